// A peer made of rhea: see peers.py for what all peers have in common.

"use strict";

const fs = require("node:fs");
const rhea = require("rhea");
const { parseArgs } = require("node:util");

const HOST = "127.0.0.1";
const CREDIT = 100;
const DATA_SECTION = 0x75;
const SETTLED = 1; // snd-settle-mode

const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
        connect: { type: "string", default: "" },
        ca: { type: "string", default: "" },
        address: { type: "string", default: "test" },
        messages: { type: "string" },
        body: { type: "string", default: "X".repeat(100) },
        kind: { type: "string", default: "data" },
        presettled: { type: "boolean", default: false },
        sasl: { type: "boolean", default: false },
        native: { type: "boolean", default: false },
        rich: { type: "boolean", default: false },
        hop: { type: "boolean", default: false },
    },
});
const sends = positionals[0] === "send";
const messages = Number(options.messages);

function say(event, content) {
    process.stdout.write(JSON.stringify({ event, ...content }) + "\n");
}

// ---- messages ----

const epoch_ns = BigInt(Date.now()) * 1000000n - process.hrtime.bigint();

function now_ns() {
    return epoch_ns + process.hrtime.bigint();
}

function eight_bytes(value) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(value);
    return bytes;
}

// rhea reads 64 bits that a number of JavaScript cannot hold as a buffer
function integer(value) {
    return Buffer.isBuffer(value) ? String(value.readBigInt64BE()) : String(value);
}

function body_of_kind() {
    const text = options.body;
    switch (options.kind) {
        case "binary":
            return Buffer.from(text);
        case "string":
            return text;
        case "number":
            return 42;
        case "list":
            return [text, 42, true, null];
        case "map":
            return { text, number: 42, list: [1, 2] };
        default:
            return rhea.message.data_section(Buffer.from(text));
    }
}

function message(number) {
    const types = rhea.types;
    const stamp = types.wrap_long(eight_bytes(now_ns()));
    const numbered = {
        sn: options.native ? number : types.wrap_ulong(number),
        ts: stamp,
    };
    const body = body_of_kind();
    if (!options.rich) return { body, application_properties: numbered };
    return {
        durable: true,
        priority: 7,
        ttl: 60000,
        // rhea puts the footer before the body
        ...(options.hop ? { delivery_annotations: { "x-opt-hop": 1 }, footer: { sn: 1 } } : {}),
        message_annotations: { "x-opt-note": "ts", "x-opt-sn": types.wrap_ulong(2 ** 40) },
        message_id: "id-" + number,
        user_id: Buffer.from("guest"),
        to: "to",
        subject: "a subject",
        reply_to: "answers",
        correlation_id: String(number),
        content_type: "a/b",
        group_id: "g",
        group_sequence: number,
        application_properties: { a: "sn", tss: true, c: -1.5, ...numbered, z: "last" },
        body,
    };
}

function present(fields) {
    return Object.fromEntries(
        Object.entries(fields)
            .filter(([, value]) => value !== undefined && value !== null)
            .map(([name, value]) => [name, String(value)])
    );
}

function describe(got) {
    const { sn, ts, ...application } = got.application_properties || {};
    const is_data = Boolean(got.body && got.body.typecode === DATA_SECTION);
    return {
        sn: integer(sn),
        ts: integer(ts),
        body: is_data ? Buffer.from(got.body.content).toString("base64") : null,
        value: is_data ? null : got.body,
        application,
        header: {
            durable: got.durable || false,
            priority: got.priority === undefined ? 4 : got.priority,
            ttl_ms: got.ttl || 0,
        },
        properties: present({
            message_id: got.message_id,
            subject: got.subject,
            reply_to: got.reply_to,
            correlation_id: got.correlation_id,
            content_type: got.content_type,
            group_id: got.group_id,
            user_id: got.user_id,
        }),
        annotations: present(got.message_annotations || {}),
    };
}

// ---- links ----

const outcomes = {};
let listener = null;
let count = 0;

function end(connection) {
    connection.close();
    if (listener) listener.close();
}

// rhea queues more than it has credit for, and a close overtakes that
function end_when_written(context) {
    const { next_pending_delivery, next_delivery_id } = context.session.outgoing;
    if (next_pending_delivery === next_delivery_id) end(context.connection);
    else setImmediate(end_when_written, context);
}

function settled(context, outcome) {
    outcomes[outcome] = (outcomes[outcome] || 0) + 1;
    const all = Object.values(outcomes).reduce((sum, n) => sum + n, 0);
    if (all === messages) end(context.connection);
}

rhea.on("sendable", (context) => {
    while (context.sender.sendable() && count < messages) {
        context.sender.send(message(++count));
    }
    if (options.presettled && count === messages) end_when_written(context);
});
for (const outcome of ["accepted", "rejected", "released", "modified"]) {
    rhea.on(outcome, (context) => settled(context, outcome));
}
rhea.on("message", (context) => {
    say("message", describe(context.message));
    if (++count === messages && options.connect) setImmediate(end, context.connection);
});
// a link without them would be one that is refused
rhea.on("sender_open", ({ sender: link }) => link.set_source({ address: link.source.address }));
rhea.on("receiver_open", ({ receiver: link }) => link.set_target({ address: link.target.address }));
for (const kind of ["sender_close", "receiver_close"]) {
    rhea.on(kind, (context) => end(context.connection));
}
rhea.on("connection_close", (context) => end(context.connection));
for (const kind of ["connection_error", "session_error", "sender_error", "receiver_error"]) {
    rhea.on(kind, (context) => {
        const failed = context.receiver || context.sender || context.session || context.connection;
        say("error", { what: kind, condition: JSON.stringify(failed.error) });
        process.exitCode = 1;
        end(context.connection);
    });
}
rhea.on("disconnected", (context) => {
    if (listener) listener.close();
    if (context.error) {
        say("error", { what: "disconnected", condition: String(context.error) });
        process.exitCode = 1;
    }
});
process.on("exit", () => say("done", { outcomes }));

const settle = {
    treat_modified_as_released: false,
    ...(options.presettled ? { snd_settle_mode: SETTLED } : {}),
};
if (options.connect) {
    const [host, port] = options.connect.split(":");
    const username = options.sasl ? { username: "anonymous" } : {};
    const tls = options.ca ? { transport: "tls", ca: fs.readFileSync(options.ca) } : {};
    const connection = rhea.connect({
        host,
        port: Number(port),
        reconnect: false,
        ...username,
        ...tls,
    });
    if (sends) connection.open_sender({ target: options.address, ...settle });
    else connection.open_receiver({ source: options.address, credit_window: CREDIT, ...settle });
} else {
    rhea.options.receiver_options = { credit_window: CREDIT };
    rhea.options.sender_options = settle;
    listener = rhea.listen({ host: HOST, port: 0 });
    listener.on("listening", () => say("listening", { port: listener.address().port }));
}
