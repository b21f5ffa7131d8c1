// A drop-tail dumbbell of endless TCP flows in csg-htsim, for `versus.py`: three hops each way, nothing recorded.
//
//     htsim FLOWS RATE_MBPS BUFFER_PACKETS SECONDS
//
// Packets of 1000 B, access links of 10 Mbit/s, a round-trip time of 120 ms. Prints the bytes that were delivered.

#include <cstdlib>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

int main(int count, char** words) {
    if (count != 5) return 2;
    const int flows = std::atoi(words[1]);
    const linkspeed_bps rate = speedFromMbps(std::atof(words[2])), access = speedFromMbps(10.0);
    const simtime_picosec shared = timeFromMs(20.0), own = timeFromMs(20.0);
    EventList events;
    events.setEndtime(timeFromSec(std::atof(words[4])));
    srand(1);
    Packet::set_packet_size(1000);
    const mem_b buffer = memFromPkt(std::atoi(words[3]));
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);
    Queue there(rate, buffer, events, nullptr), back(rate, memFromPkt(100000), events, nullptr);
    Pipe thence(shared, events), hence(shared, events);
    std::vector<TcpSink*> sinks;
    for (int flow = 0; flow < flows; flow++) {
        auto* source = new TcpSrc(nullptr, nullptr, events);
        sinks.push_back(new TcpSink());
        timers.registerTcp(*source);
        Route* routes[2] = {new Route(), new Route()};
        for (int way = 0; way < 2; way++) {
            auto hop = [&](BaseQueue* queue, Pipe* pipe) {
                routes[way]->push_back(queue);
                routes[way]->push_back(pipe);
            };
            hop(new Queue(access, memFromPkt(1000), events, nullptr), new Pipe(own, events));
            hop(way == 0 ? &there : &back, way == 0 ? &thence : &hence);
            hop(new Queue(access, memFromPkt(1000), events, nullptr), new Pipe(own, events));
        }
        routes[0]->push_back(sinks.back());
        routes[1]->push_back(source);
        source->connect(*routes[0], *routes[1], *sinks.back(), static_cast<simtime_picosec>(drand() * timeFromSec(1.0)));
    }
    // The library prints each timeout.
    std::cout.setstate(std::ios::failbit);
    while (events.doNextEvent()) {}
    std::cout.clear();
    uint64_t delivered = 0;
    for (const TcpSink* sink : sinks) delivered += sink->_cumulative_ack;
    std::cout << delivered << std::endl;
}
