"""ppair: experiments with psend and precv.

Layers, each of which imports only lower ones:

    cli
    commands/*                run sweep tune compare report soak; never one another
    experiment                points x repetitions, into a results directory
    tables plots page formats what is shown; they read results alone
    pair                      one run of one arrangement
    peer host                 one process, here or at the other end of ssh
    results metrics advice inference
    spec axes events histogram machine programs units failure
"""

VERSION = "0.1.0"
