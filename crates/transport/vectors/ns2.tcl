# One TCP connection over a link that drops or marks chosen packets; prints each segment as it leaves the sender.
# Usage: ns ns2.tcl AGENT ECN DROPS MARKS SECONDS SINK WINDOW, DROPS and MARKS being lists of packet numbers in order of arrival at
# the bottleneck (the SYN is 0). Output: time [s], segment number, size [bytes], C where the segment carries CWR.
lassign $argv agent ecn drops marks seconds sinktype window
set ns [new Simulator]
set source [$ns node]
set router [$ns node]
set sink [$ns node]
$ns duplex-link $source $router 100Mb 1ms DropTail
$ns duplex-link $router $sink 790kb 40ms DropTail
foreach {a b} [list $source $router $router $sink] {
    $ns queue-limit $a $b 10000
    $ns queue-limit $b $a 10000
}
foreach {list mark} [list $drops 0 $marks 1] {
    if {[llength $list]} {
        set model [new ErrorModel/List]
        $model droplist $list
        $model set markecn_ $mark
        $model drop-target [new Agent/Null]
        $ns lossmodel $model $router $sink
    }
}
set out [open trace.tmp w]
$ns trace-queue $source $router $out
set tcp [new Agent/TCP/$agent]
if {$agent eq "Linux"} {
    # CUBIC with a reduction to 717/1024 = 0.7; its timestamps are part of the header here. It tells each command on standard output.
    $tcp set_ca_default_param cubic beta 717
    $tcp set timestamps_ 1
    $tcp set ts_option_size_ 0
    $tcp set delay_growth_ 1
    $tcp set windowInit_ 2
}
$tcp set packetSize_ 960
$tcp set window_ $window
$tcp set ecn_ $ecn
$ns attach-agent $source $tcp
set receiver [new Agent/$sinktype]
$ns attach-agent $sink $receiver
$ns connect $tcp $receiver
if {$agent eq "Linux"} {
    # After its variables: it reads the windows when the control is chosen, and sets its clock to 1 ms.
    $tcp reset
    $tcp select_ca cubic
    $tcp set tcpTick_ 0.001
}
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.1 "$ftp start"
$ns at $seconds {
    $ns flush-trace
    close $out
    set in [open trace.tmp]
    while {[gets $in line] >= 0} {
        lassign $line event time from to kind size flags
        if {$event eq "+"} {
            puts "$time [lindex $line 10] $size[expr {[string index $flags 3] eq "A" ? " C" : ""}]"
        }
    }
    close $in
    file delete trace.tmp
    exit 0
}
$ns run
