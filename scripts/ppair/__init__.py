"""ppair: experiments with psend and precv.

Layers, each of which imports only lower ones; tests/ppair/test_layers.py has them in full:

    cli
    commands/*                  run sweep tune latency compare soak report; never one another
    output page plots formats tables comparison     what is shown; they read results alone
    experiment credit_search    points x repetitions, into a results directory
    pair peer host store certificates   one run; one process; one directory
    results presets             what is planned and what came out
    metrics accounting inference fits advice verdicts tuning    numbers, and what they mean
    spec axes programs units secret     words of a command line
    events histogram machine failure series table svg url
"""

VERSION = "0.1.0"
