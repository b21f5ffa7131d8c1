"""Examples of each command, shown at the end of its help."""

__all__ = ["EXAMPLES"]

EXAMPLES = {
    "run": (
        "aqumen run arm-pfc/exp1 --aqm pi",
        "aqumen run rfc7928/mix --aqm codel:target=10ms --until 30s --json",
    ),
    "compare": (
        "aqumen compare arm-pfc/exp1 --aqm pi,codel,pie --seeds 10 --out out",
        "aqumen compare arm-pfc/exp1 --aqm pi --engine packet --engine fluid",
    ),
    "study": (
        "aqumen study run examples/studies/load-rtt.toml --out s",
        'aqumen study query s "select aqm, avg(sojourn_p99_s) from runs group by 1"',
    ),
    "uplink": (
        "aqumen uplink --down 20Mbit --up 2Mbit",
        "aqumen uplink --down 50Mbit --up 10Mbit --line vdsl --device wan --out home",
    ),
    "office": (
        "aqumen office --rate 1Gbit --people 40",
        "aqumen office --rate 200Mbit --up 40Mbit --people 15 --seeds 2 --out office",
    ),
    "datacenter": (
        "aqumen datacenter --rate 10Gbit --rtt 100us",
        "aqumen datacenter --rate 1Gbit --load 50 --senders dctcp",
    ),
    "cell": (
        "aqumen cell --cqi 10",
        "aqumen cell --cqi 5 --handover 10s --senders cubic --out phone",
    ),
    "backbone": (
        "aqumen backbone --rate 100Mbit --flows 100",
        "aqumen backbone --rate 1Gbit --flows 500 --rtt 100ms --senders cubic --out link",
    ),
    "reproduce": (
        "aqumen reproduce arm-pfc --quick",
        "aqumen reproduce rfc7928 --aqm codel,pie --target 5ms --out r",
    ),
    "report": ("aqumen report out", "aqumen report out --page other.html --theory"),
    "break": ("aqumen break codel", "aqumen break pi --against codel --metric sojourn_p99_s --runs 1000"),
    "calibrate": (
        "aqumen calibrate paqm/load --group ftp --loss 0.03",
        "aqumen calibrate arm-pfc/exp1 --group ftp --loss 0.01 --aqm pi",
    ),
    "design": (
        "aqumen design pi --capacity 30Mbit --flows 60 --rtt 100ms --target 20ms",
        "aqumen design pi --capacity 30Mbit --flows 60 --rtt 100ms --target 20ms --plot nyquist.svg",
    ),
    "map": (
        "aqumen map pi --capacity 30Mbit --flows 60 --rtt 100ms --over flows=10:200 --over rtt=20ms:400ms",
        "aqumen map red --capacity 30Mbit --flows 60 --rtt 100ms --over flows=10:200 --over rtt=50ms:200ms --json",
    ),
    "robust": (
        "aqumen robust rem --capacity 30Mbit --flows 60 --rtt 100ms --over flows=20:200",
        "aqumen robust red --capacity 30Mbit --flows 60 --rtt 100ms --over flows=20:200 --over rtt=50ms:200ms",
    ),
    "tune": (
        "aqumen tune arm-pfc/exp1 --aqm pi --loop",
        "aqumen tune pi --over examples/studies/pi-target.toml --objective qacd_pkts --out t",
    ),
    "mmpp": (
        "aqumen mmpp examples/mmpp/voice.toml",
        "aqumen mmpp capture.pcapng --buffer 100pkt --link 10Mbit",
    ),
    "replay": (
        "aqumen replay office.pcapng --rate 20Mbit --aqm fq-codel,codel",
        "aqumen replay office.pcapng --load 0.95 --aqm pie:target=10ms --out departed",
    ),
    "studio": ("aqumen studio", "aqumen studio out --open"),
    "new": ("aqumen new aqm wave", "aqumen new aqm --rust my-pi"),
    "list": ("aqumen list aqms", "aqumen list scenarios --json"),
    "validate": ("aqumen validate vectors", "aqumen validate ns2 --seeds 5 --out kept"),
    "doctor": ("aqumen doctor", "aqumen doctor > missing.txt"),
    "man": ("aqumen man > ~/.local/share/man/man1/aqumen.1", "aqumen man | man -l -"),
    "completion": (
        "aqumen completion bash > ~/.local/share/bash-completion/completions/aqumen",
        "aqumen completion fish > ~/.config/fish/completions/aqumen.fish",
    ),
}
"""Command name to two command lines."""
