// Runs one network of bulk TCP flows and datagrams in ns-3 and writes down what happens at its recorded queues.
//
// The program reads a description from standard input, one statement a line, times in seconds, sizes in bytes:
//
//     seed N              duration T           nodes COUNT
//     link I FROM TO RATE_BPS DELAY LIMIT      LIMIT of its queue as in `300p` or `30000B`
//     rate I TIME RATE_BPS                     a later rate
//     disc I TYPE                              queue discipline; without one the device's own queue
//     set I ATTRIBUTE VALUE                    of that discipline; `quantum` and `MinBytes` of FqCoDelQueueDisc, too
//     record I                                 what happens at the discipline goes into linkI.bin
//     random I P                               losses on the wire: of each packet
//     bits I P                                 ... of each bit to be wrong
//     chain I TO_BAD TO_GOOD GOOD BAD          ... by a state that moves with each packet, with a probability in each
//     times I MEAN_GOOD MEAN_BAD GOOD BAD      ... by a state that lasts for exponential times
//     transport K CONTROL BYTES                TCP of some flows: congestion control, and what they write at a time
//     option K OF ATTRIBUTE VALUE              of its `socket`, `control` or `rtt`; `option K pacing on true`
//     route AT TO_NODE LINK
//     flow FIRST_LINK LAST_LINK START STOP K BYTES    TCP of transport K; STOP < 0: never, BYTES 0: endless
//     datagrams FIRST_LINK LAST_LINK START STOP PAYLOAD RATE_BPS ON OFF    UDP; ON and OFF are random variables
//     snapshot TIME
//
// Each record of linkI.bin is four doubles: time, kind, two values (see `Recorder`). At a snapshot standard output gets
// `S TIME`, then for each flow `F BYTES_DELIVERED SEGMENTS_SENT SEGMENTS_SENT_AGAIN TIMEOUTS ARRIVED MISSING RUNS` (the last
// three of datagrams, runs of missing ones), and for each wire that loses packets `W LINK PACKETS_LOST`; `END` comes last.
//
// The queue discipline sits directly above the transmitter: the device takes a packet only when it is idle. With ns-3's own
// flow control one more packet would wait in the device's queue, unseen by the discipline.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace ns3 {

/// Stands in for the library's: the data in the network after RFC 6675 (SetPipe). That of ns-3.37 goes on counting a segment that was sent
/// again and has arrived beyond a gap, until the gap is closed: behind a lost retransmission the sender falls silent until the timer goes off.
uint32_t TcpTxBuffer::BytesInFlight() const {
    uint32_t pipe = 0;
    for (const TcpTxItem* item : m_sentList) {
        if (item->m_sacked) continue;
        const uint32_t size = item->m_packet->GetSize();
        if (!item->m_lost) pipe += size;
        if (item->m_retrans) pipe += size;
    }
    return pipe;
}

}  // namespace ns3

using namespace ns3;

namespace {

constexpr uint16_t PORT = 5000;
/// What a point-to-point device adds to a packet.
constexpr uint32_t PPP_BYTES = 2;

/// A device's rate as a packet finds it. The device adds a header of its own: a rate that is higher by as much keeps the packet's time.
class Pace {
  public:
    Pace(Ptr<PointToPointNetDevice> device, double rate) : m_device(device), m_rate(rate) {
        // Before the device works out how long the packet takes.
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Pace::Begin, this));
    }

    void SetRate(double rate) { m_rate = rate; }

  private:
    void Begin(Ptr<const Packet> packet) {
        const double size = packet->GetSize();
        m_device->SetDataRate(DataRate(static_cast<uint64_t>(m_rate * size / (size - PPP_BYTES) + 0.5)));
    }

    Ptr<PointToPointNetDevice> m_device;
    double m_rate;
};

/// Losses on a wire, seen where packets arrive.
class WireLosses : public ErrorModel {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::WireLosses").SetParent<ErrorModel>();
        return id;
    }

    /// Probability of any packet, and of a bit to be wrong.
    double random{0.0}, bits{0.0};
    /// A state that moves with each packet: chances to become bad and good, or one that lasts for times: their means. Losses in each.
    double toBad{0.0}, toGood{0.0}, meanGood{0.0}, meanBad{0.0}, good{0.0}, bad{0.0};
    uint64_t lost{0};

  private:
    bool Chance(double p) { return p > 0.0 && m_uniform->GetValue() < p; }

    bool DoCorrupt(Ptr<Packet> packet) override {
        if (toBad > 0.0) m_isBad = m_isBad ? !Chance(toGood) : Chance(toBad);
        if (meanGood > 0.0) {
            if (m_until.IsZero()) m_until = Seconds(m_exponential->GetValue(meanGood, 0.0));
            while (Simulator::Now() >= m_until) {
                m_isBad = !m_isBad;
                m_until += Seconds(m_exponential->GetValue(m_isBad ? meanBad : meanGood, 0.0));
            }
        }
        const double wrong = 1.0 - std::pow(1.0 - bits, 8.0 * (packet->GetSize() - PPP_BYTES));
        const bool isLost = Chance(m_isBad ? bad : good) || Chance(random) || Chance(wrong);
        lost += isLost;
        return isLost;
    }

    void DoReset() override {}

    Ptr<UniformRandomVariable> m_uniform{CreateObject<UniformRandomVariable>()};
    Ptr<ExponentialRandomVariable> m_exponential{CreateObject<ExponentialRandomVariable>()};
    bool m_isBad{false};
    Time m_until{0};
};

NS_OBJECT_ENSURE_REGISTERED(WireLosses);

struct Link {
    uint32_t from, to;
    double rate, delay;
    std::string limit;
    std::string disc;
    bool recorded{false};
    Ptr<WireLosses> losses;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<std::pair<double, double>> rates;
    Ptr<PointToPointNetDevice> device;
    std::unique_ptr<Pace> pace;
    Ipv4Address address;
    uint32_t interface;
};

struct Route {
    uint32_t at, to, link;
};

/// TCP of some flows: `options` by what has them.
struct Transport {
    std::string control;
    uint32_t write;
    std::map<std::string, std::vector<std::pair<std::string, std::string>>> options;
    TypeId senders, receivers;
};

struct Flow {
    bool isTcp;
    uint32_t first, last;
    double start, stop;
    uint32_t transport;
    uint64_t bytes;
    // Of datagrams.
    uint32_t payload;
    std::string rate, on, off;
    Ptr<BulkSendApplication> source;
    Ptr<PacketSink> sink;
    SequenceNumber32 highest{0};
    uint64_t sent{0}, again{0}, timeouts{0}, arrived{0}, missing{0}, runs{0};
};

/// TcpLinuxReno that grows as RFC 5681 section 3.1 says, by segment^2 / window for each segment acknowledged (at most
/// `GrowthLimit` for one acknowledgement, RFC 3465), and not with the acknowledgement that ends a recovery. TcpLinuxReno
/// counts whole windows of acknowledged segments, and all those of that acknowledgement although most of them arrived
/// long before: a window halved to ten segments begins with twelve. Its name is in ns-3's namespace like all others.
class Rfc5681Reno : public TcpLinuxReno {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::Rfc5681Reno")
                               .SetParent<TcpLinuxReno>()
                               .AddConstructor<Rfc5681Reno>()
                               .AddAttribute("GrowthLimit", "Segments for which one acknowledgement counts",
                                             UintegerValue(2), MakeUintegerAccessor(&Rfc5681Reno::m_limit),
                                             MakeUintegerChecker<uint32_t>(1));
        return id;
    }

    std::string GetName() const override { return "Rfc5681Reno"; }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<Rfc5681Reno>(this); }

    void CongestionStateSet(Ptr<TcpSocketState> socket, const TcpSocketState::TcpCongState_t now) override {
        m_recovered = socket->m_congState == TcpSocketState::CA_RECOVERY && now == TcpSocketState::CA_OPEN;
    }

    void IncreaseWindow(Ptr<TcpSocketState> socket, uint32_t acked) override {
        const bool recovered = m_recovered;
        m_recovered = false;
        if (recovered) return;
        const double segment = socket->m_segmentSize;
        const double counted = std::min(acked, m_limit) * segment;
        const double window = socket->m_cWnd;
        // The window is in whole bytes.
        m_rest += window < socket->m_ssThresh ? counted : counted * segment / window;
        const auto whole = static_cast<uint32_t>(m_rest);
        m_rest -= whole;
        socket->m_cWnd += whole;
    }

  private:
    uint32_t m_limit{2};
    double m_rest{0.0};
    bool m_recovered{false};
};

NS_OBJECT_ENSURE_REGISTERED(Rfc5681Reno);

/// Opens a private member to what stands below.
template <auto Member>
struct Opened {
    friend uint32_t& Counted(TcpCubic& cubic) { return cubic.*Member; }
};
template struct Opened<&TcpCubic::m_cWndCnt>;
uint32_t& Counted(TcpCubic& cubic);

/// TcpCubic whose slow start counts at most `GrowthLimit` segments for one acknowledgement (RFC 3465), and whose plateau ends as in Linux.
/// TcpCubic counts all: the acknowledgement that ends a timeout covers what had arrived behind the hole, and takes a window of
/// one to two hundred, far beyond the threshold. And what it counts on its plateau, where a hundred windows make a segment, it spends
/// when the plateau ends, a segment for each acknowledgement; Linux gives one segment for all of that, RFC 9438 none. Nor does it forget
/// the count at a reduction, as Linux does (tcp_init_cwnd_reduction): the first acknowledgement after one from a plateau lets the window grow.
class Rfc3465Cubic : public TcpCubic {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::Rfc3465Cubic")
                               .SetParent<TcpCubic>()
                               .AddConstructor<Rfc3465Cubic>()
                               .AddAttribute("GrowthLimit", "Segments for which one acknowledgement counts",
                                             UintegerValue(2), MakeUintegerAccessor(&Rfc3465Cubic::m_limit),
                                             MakeUintegerChecker<uint32_t>(1));
        return id;
    }

    std::string GetName() const override { return "Rfc3465Cubic"; }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<Rfc3465Cubic>(this); }

    void IncreaseWindow(Ptr<TcpSocketState> socket, uint32_t acked) override {
        const bool opening = socket->m_cWnd < socket->m_ssThresh;
        const uint32_t before = socket->m_cWnd;
        TcpCubic::IncreaseWindow(socket, opening ? std::min(acked, m_limit) : acked);
        if (!opening && socket->m_cWnd > before) Counted(*this) = std::min(Counted(*this), acked);
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> socket, uint32_t flight) override {
        Counted(*this) = 0;
        return TcpCubic::GetSsThresh(socket, flight);
    }

  private:
    uint32_t m_limit{2};
};

NS_OBJECT_ENSURE_REGISTERED(Rfc3465Cubic);

/// The senders' socket: TcpSocketBase with the timer of RFC 6298, RFC 7323 and RFC 6675, and one reaction to marks and losses in a window
/// of data (RFC 3168 section 6.1.2). In ns-3.37
/// - a timeout forgets what is outstanding, and nothing is sampled until newer data has come back; but the next acknowledgement ends the
///   backoff, for which RFC 6298 section 5 asks a new sample. Where the round trip has outgrown the timer it goes off again and
///   again. With timestamps every acknowledgement of new data is a sample (RFC 7323 section 4.1), and it learns.
/// - in a recovery by SACK only the first partial acknowledgement restarts the timer (RFC 6582, for senders without SACK), not each
///   (RFC 6298 rule 5.3), and what is sent again does not: RFC 6675 section 6 leaves that open, our senders and Linux do it for the
///   oldest segment. The timer then runs from before the duplicates, which take long to come where windows are small.
/// - an echo in a recovery reduces the window again and ends the recovery, and after a timeout it sets window and threshold to two: the
///   receiver echoes on until it sees CWR, which only new data carry. RFC 3168, Linux and ours have answered the window of data already;
///   CWR then leaves with the first new segment.
class Rfc6298Socket : public TcpSocketBase {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::Rfc6298Socket").SetParent<TcpSocketBase>().AddConstructor<Rfc6298Socket>();
        return id;
    }

  protected:
    Ptr<TcpSocketBase> Fork() override { return CopyObject<Rfc6298Socket>(this); }

    void EstimateRtt(const TcpHeader& header) override {
        if (!m_timestampEnabled || !header.HasOption(TcpOption::TS)) return TcpSocketBase::EstimateRtt(header);
        const SequenceNumber32 acknowledged = header.GetAckNumber();
        while (!m_history.empty() && m_history.front().seq + SequenceNumber32(m_history.front().count) <= acknowledged)
            m_history.pop_front();
        if (!(header.GetFlags() & TcpHeader::SYN) && acknowledged <= m_txBuffer->HeadSequence()) return;
        const auto stamp = DynamicCast<const TcpOptionTS>(header.GetOption(TcpOption::TS));
        m_rtt->Measurement(Max(TcpOptionTS::ElapsedTimeFromTsValue(stamp->GetEcho()), MicroSeconds(1)));
        m_rto = Max(m_rtt->GetEstimate() + Max(m_clockGranularity, m_rtt->GetVariation() * 4), m_minRto);
        m_tcb->m_lastRtt = m_rtt->GetEstimate();
        m_tcb->m_minRtt = Min(m_tcb->m_lastRtt, m_tcb->m_minRtt);
    }

    void ReceivedAck(Ptr<Packet> packet, const TcpHeader& header) override {
        const auto state = m_tcb->m_congState.Get();
        const bool answered = state == TcpSocketState::CA_RECOVERY || state == TcpSocketState::CA_LOSS;
        if (!(header.GetFlags() & TcpHeader::ECE) || !answered || header.GetAckNumber() > m_recover)
            return TcpSocketBase::ReceivedAck(packet, header);
        m_owes |= m_answered != m_recover;
        m_answered = m_recover;
        TcpHeader silent = header;
        silent.SetFlags(header.GetFlags() & ~TcpHeader::ECE);
        TcpSocketBase::ReceivedAck(packet, silent);
    }

    void NewAck(const SequenceNumber32& acknowledged, bool) override { TcpSocketBase::NewAck(acknowledged, true); }

    uint32_t SendDataPacket(SequenceNumber32 seq, uint32_t size, bool acknowledge) override {
        // The library sets the timer with a segment that leaves while it is off.
        if (seq == m_txBuffer->HeadSequence() && seq < m_tcb->m_highTxMark) m_retxEvent.Cancel();
        if (m_owes && seq >= m_tcb->m_highTxMark) {
            // The library sends CWR where it has an echo to answer that came after the last one it answered.
            m_tcb->m_ecnState = TcpSocketState::ECN_ECE_RCVD;
            m_ecnEchoSeq = m_ecnCWRSeq + 1;
            m_owes = false;
        }
        return TcpSocketBase::SendDataPacket(seq, size, acknowledge);
    }

  private:
    /// CWR is still to be sent for the recovery that ends at `m_answered`.
    bool m_owes{false};
    SequenceNumber32 m_answered{0};
};

NS_OBJECT_ENSURE_REGISTERED(Rfc6298Socket);

/// Makes the sockets of one transport on one node: those of senders, or of receivers. An application names the kind that it wants by a
/// type, so that each transport has two types of its own.
class Sockets : public SocketFactory {
  public:
    Sockets(Ptr<Node> node, const Transport& transport, bool sends)
        : m_node(node), m_transport(transport), m_sends(sends) {}

    TypeId GetInstanceTypeId() const override { return m_sends ? m_transport.senders : m_transport.receivers; }

    Ptr<Socket> CreateSocket() override {
        auto tcp = m_node->GetObject<TcpL4Protocol>();
        Ptr<TcpSocketBase> socket = m_sends ? Ptr<TcpSocketBase>(CreateObject<Rfc6298Socket>()) : CreateObject<TcpSocketBase>();
        socket->SetNode(m_node);
        socket->SetTcp(tcp);
        socket->SetRtt(Make<RttEstimator>("ns3::RttMeanDeviation", "rtt"));
        socket->SetCongestionControlAlgorithm(Make<TcpCongestionOps>(m_transport.control, "control"));
        socket->SetRecoveryAlgorithm(CreateObject<TcpClassicRecovery>());
        for (const auto& [attribute, value] : Options("socket")) socket->SetAttribute(attribute, StringValue(value));
        for (const auto& [_, value] : Options("pacing")) socket->SetPacingStatus(value == "true");
        tcp->AddSocket(socket);
        return socket;
    }

  private:
    const std::vector<std::pair<std::string, std::string>>& Options(const std::string& of) const {
        static const std::vector<std::pair<std::string, std::string>> none;
        auto found = m_transport.options.find(of);
        return found == m_transport.options.end() ? none : found->second;
    }

    template <typename Made>
    Ptr<Made> Make(const std::string& type, const std::string& of) const {
        ObjectFactory factory(type);
        for (const auto& [attribute, value] : Options(of)) factory.Set(attribute, StringValue(value));
        return factory.Create<Made>();
    }

    Ptr<Node> m_node;
    const Transport& m_transport;
    bool m_sends;
};

/// Writes what happens at one queue.
class Recorder {
  public:
    enum Kind { ARRIVED, LEFT, LEFT_MARKED, EARLY_DROP, OVERFLOW_DROP, LENGTH };

    Recorder(const std::string& path, Ptr<QueueDisc> disc, Ptr<PointToPointNetDevice> device)
        : m_file(std::fopen(path.c_str(), "wb")) {
        if (!m_file) NS_FATAL_ERROR("cannot write " << path);
        disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&Recorder::Enqueued, this));
        disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Recorder::DroppedBefore, this));
        disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&Recorder::DroppedAfter, this));
        disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Recorder::Length, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Recorder::Left, this));
    }

    ~Recorder() { std::fclose(m_file); }

  private:
    /// When a packet came, in seconds, and its number.
    struct Arrival {
        double at;
        uint64_t number;
    };

    void Write(Kind kind, double a = 0.0, double b = 0.0) {
        const double record[4] = {Simulator::Now().GetSeconds(), static_cast<double>(kind), a, b};
        std::fwrite(record, sizeof record, 1, m_file);
    }

    void Enqueued(Ptr<const QueueDiscItem> item) {
        m_arrival[PeekPointer(item->GetPacket())] = {Simulator::Now().GetSeconds(), ++m_arrived};
        Write(ARRIVED);
    }

    void DroppedBefore(Ptr<const QueueDiscItem>, const char* reason) {
        Write(ARRIVED);
        Drop(reason, ++m_arrived);
    }

    void DroppedAfter(Ptr<const QueueDiscItem> item, const char* reason) {
        auto arrival = m_arrival.find(PeekPointer(item->GetPacket()));
        if (arrival == m_arrival.end()) NS_FATAL_ERROR("a packet was dropped that had not come");
        Drop(reason, arrival->second.number);
        m_arrival.erase(arrival);
    }

    /// The packet that came as number `number`, from 1, is lost.
    void Drop(const std::string& reason, uint64_t number) {
        const bool full = reason.find("Overlimit") != std::string::npos || reason.find("Forced") != std::string::npos ||
                          reason.find("Queue disc limit") != std::string::npos;
        Write(full ? OVERFLOW_DROP : EARLY_DROP, number);
    }

    void Length(uint32_t, uint32_t now) { Write(LENGTH, now); }

    void Left(Ptr<const Packet> packet) {
        auto arrival = m_arrival.find(PeekPointer(packet));
        if (arrival == m_arrival.end()) NS_FATAL_ERROR("a packet left that had not come");
        const double wait = Simulator::Now().GetSeconds() - arrival->second.at;
        m_arrival.erase(arrival);
        Ptr<Packet> copy = packet->Copy();
        PppHeader ppp;
        copy->RemoveHeader(ppp);
        Ipv4Header ip;
        copy->PeekHeader(ip);
        Write(ip.GetEcn() == Ipv4Header::ECN_CE ? LEFT_MARKED : LEFT, copy->GetSize(), wait);
    }

    std::FILE* m_file;
    // By address: fragments of one write share their packet number.
    std::unordered_map<const Packet*, Arrival> m_arrival;
    uint64_t m_arrived{0};
};

/// Lets the discipline hand down a packet only when the transmitter is idle.
class Gate {
  public:
    explicit Gate(Ptr<PointToPointNetDevice> device) {
        auto interface = CreateObject<NetDeviceQueueInterface>();
        device->AggregateObject(interface);
        m_queue = interface->GetTxQueue(0);
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Gate::Begin, this));
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Gate::End, this));
    }

  private:
    void Begin(Ptr<const Packet>) { m_queue->Stop(); }

    // The device becomes idle only after this trace.
    void End(Ptr<const Packet>) { Simulator::ScheduleNow(&NetDeviceQueue::Wake, m_queue); }

    Ptr<NetDeviceQueue> m_queue;
};

void Sent(Flow* flow, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) return;
    const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    ++flow->sent;
    if (end <= flow->highest)
        ++flow->again;
    else
        flow->highest = end;
}

/// A timeout doubles what the timer waits, up to a minute; an acknowledgement sets it anew.
void TimerChanged(Flow* flow, Time before, Time now) {
    flow->timeouts += now == std::min(before + before, Seconds(60));
}

void Watch(Flow* flow) {
    Ptr<Socket> socket = flow->source->GetSocket();
    socket->TraceConnectWithoutContext("Tx", MakeBoundCallback(&Sent, flow));
    socket->TraceConnectWithoutContext("RTO", MakeBoundCallback(&TimerChanged, flow));
}

/// A datagram arrived; the numbers that it passed over are missing.
void Arrived(Flow* flow, Ptr<const Packet>, const Address&, const Address&, const SeqTsSizeHeader& header) {
    const uint64_t expected = flow->arrived + flow->missing;
    if (header.GetSeq() > expected) {
        flow->missing += header.GetSeq() - expected;
        ++flow->runs;
    }
    ++flow->arrived;
}

void Snapshot(std::vector<Flow>* flows, std::vector<Link>* links) {
    std::cout << "S " << Simulator::Now().GetSeconds() << "\n";
    for (const Flow& flow : *flows)
        std::cout << "F " << flow.sink->GetTotalRx() << " " << flow.sent << " " << flow.again << " " << flow.timeouts
                  << " " << flow.arrived << " " << flow.missing << " " << flow.runs << "\n";
    for (size_t i = 0; i < links->size(); ++i)
        if ((*links)[i].losses) std::cout << "W " << i << " " << (*links)[i].losses->lost << "\n";
}

}  // namespace

int main() {
    std::cout.precision(17);
    double duration = 0.0;
    uint32_t count = 0;
    std::vector<Link> links;
    std::vector<Transport> transports;
    std::vector<Route> routes;
    std::vector<Flow> flows;
    std::vector<double> snapshots;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string what;
        words >> what;
        if (what == "seed") {
            uint32_t seed;
            words >> seed;
            RngSeedManager::SetSeed(seed);
        } else if (what == "duration") {
            words >> duration;
        } else if (what == "nodes") {
            words >> count;
        } else if (what == "link") {
            uint32_t number;
            Link link{};
            words >> number >> link.from >> link.to >> link.rate >> link.delay >> link.limit;
            links.push_back(std::move(link));
        } else if (what == "rate") {
            uint32_t number;
            double time, rate;
            words >> number >> time >> rate;
            links.at(number).rates.emplace_back(time, rate);
        } else if (what == "disc") {
            uint32_t number;
            words >> number;
            words >> links.at(number).disc;
        } else if (what == "set") {
            uint32_t number;
            std::string attribute, value;
            words >> number >> attribute >> value;
            links.at(number).attributes.emplace_back(attribute, value);
        } else if (what == "record") {
            uint32_t number;
            words >> number;
            links.at(number).recorded = true;
        } else if (what == "random" || what == "bits" || what == "chain" || what == "times") {
            uint32_t number;
            words >> number;
            auto& losses = links.at(number).losses;
            if (!losses) losses = CreateObject<WireLosses>();
            if (what == "random")
                words >> losses->random;
            else if (what == "bits")
                words >> losses->bits;
            else if (what == "chain")
                words >> losses->toBad >> losses->toGood >> losses->good >> losses->bad;
            else
                words >> losses->meanGood >> losses->meanBad >> losses->good >> losses->bad;
        } else if (what == "transport") {
            uint32_t number;
            Transport transport;
            words >> number >> transport.control >> transport.write;
            for (TypeId* type : {&transport.senders, &transport.receivers})
                *type = TypeId((type == &transport.senders ? "ns3::Senders" : "ns3::Receivers") + std::to_string(number))
                            .SetParent<SocketFactory>();
            transports.push_back(transport);
        } else if (what == "option") {
            uint32_t number;
            std::string of, attribute, value;
            words >> number >> of >> attribute >> value;
            transports.at(number).options[of].emplace_back(attribute, value);
        } else if (what == "route") {
            Route route;
            words >> route.at >> route.to >> route.link;
            routes.push_back(route);
        } else if (what == "flow") {
            Flow flow{};
            flow.isTcp = true;
            words >> flow.first >> flow.last >> flow.start >> flow.stop >> flow.transport >> flow.bytes;
            flows.push_back(flow);
        } else if (what == "datagrams") {
            Flow flow{};
            words >> flow.first >> flow.last >> flow.start >> flow.stop >> flow.payload >> flow.rate >> flow.on >> flow.off;
            flows.push_back(flow);
        } else if (what == "snapshot") {
            double time;
            words >> time;
            snapshots.push_back(time);
        } else if (!what.empty()) {
            std::cerr << "unknown statement: " << line << std::endl;
            return 2;
        }
        if (words.fail()) {
            std::cerr << "cannot read: " << line << std::endl;
            return 2;
        }
    }

    NodeContainer nodes;
    nodes.Create(count);
    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);

    // A channel for each pair of nodes; each direction has a device with a rate of its own.
    std::map<std::pair<uint32_t, uint32_t>, Ptr<PointToPointChannel>> channels;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> by_ends;
    uint32_t network = 0;
    for (uint32_t i = 0; i < links.size(); ++i) {
        Link& link = links[i];
        by_ends[{link.from, link.to}] = i;
        auto& channel = channels[std::minmax(link.from, link.to)];
        if (!channel) {
            channel = CreateObject<PointToPointChannel>();
            channel->SetAttribute("Delay", TimeValue(Seconds(link.delay)));
        }
        link.device = CreateObject<PointToPointNetDevice>();
        link.device->SetAddress(Mac48Address::Allocate());
        link.device->SetMtu(65535);
        link.pace = std::make_unique<Pace>(link.device, link.rate);
        nodes.Get(link.from)->AddDevice(link.device);
        auto queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetMaxSize(QueueSize(link.disc.empty() ? link.limit : "1p"));
        link.device->SetQueue(queue);
        link.device->Attach(channel);
        for (auto [time, rate] : link.rates) Simulator::Schedule(Seconds(time), &Pace::SetRate, link.pace.get(), rate);
    }
    for (uint32_t i = 0; i < links.size(); ++i) {
        Link& link = links[i];
        auto back = by_ends.find({link.to, link.from});
        if (back == by_ends.end()) {
            std::cerr << "link " << i << " has no way back" << std::endl;
            return 2;
        }
        if (link.losses) links[back->second].device->SetReceiveErrorModel(link.losses);
        if (back->second < i) continue;
        const uint32_t base = (10u << 24) + 4 * network++;
        uint32_t host = 1;
        for (Link* end : {&link, &links[back->second]}) {
            auto ipv4 = nodes.Get(end->from)->GetObject<Ipv4>();
            end->address = Ipv4Address(base + host++);
            end->interface = ipv4->AddInterface(end->device);
            ipv4->AddAddress(end->interface, Ipv4InterfaceAddress(end->address, Ipv4Mask("255.255.255.252")));
            ipv4->SetUp(end->interface);
        }
    }

    std::vector<std::unique_ptr<Gate>> gates;
    std::vector<std::unique_ptr<Recorder>> recorders;
    for (uint32_t i = 0; i < links.size(); ++i) {
        Link& link = links[i];
        if (link.disc.empty()) continue;
        gates.push_back(std::make_unique<Gate>(link.device));
        ObjectFactory factory(link.disc);
        uint32_t quantum = 0;
        for (const auto& [attribute, value] : link.attributes) {
            // No attribute in ns-3: the device's MTU unless set by a call.
            if (attribute == "quantum")
                quantum = static_cast<uint32_t>(std::stoul(value));
            else if (attribute == "MinBytes" && link.disc == "ns3::FqCoDelQueueDisc")
                // Nor this one: its queues, made as flows come, have CoDel's default.
                Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", StringValue(value));
            else
                factory.Set(attribute, StringValue(value));
        }
        auto disc = factory.Create<QueueDisc>();
        if (auto fair = DynamicCast<FqCoDelQueueDisc>(disc)) fair->SetQuantum(quantum);
        nodes.Get(link.from)->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(link.device, disc);
        if (link.recorded)
            recorders.push_back(std::make_unique<Recorder>("link" + std::to_string(i) + ".bin", disc, link.device));
    }

    for (const Route& route : routes) {
        auto table = routing.GetStaticRouting(nodes.Get(route.at)->GetObject<Ipv4>());
        const Link& link = links.at(route.link);
        const Ipv4Address next = links[by_ends[{link.to, link.from}]].address;
        for (const Link& end : links)
            if (end.from == route.to) table->AddHostRouteTo(end.address, next, link.interface);
    }

    for (Flow& flow : flows) {
        const Link& first = links.at(flow.first);
        const Link& last = links.at(flow.last);
        const Ipv4Address to = links[by_ends[{last.to, last.from}]].address;
        const auto source = nodes.Get(first.from), target = nodes.Get(last.to);
        const uint16_t port = PORT + target->GetNApplications();
        TypeId senders = UdpSocketFactory::GetTypeId(), receivers = senders;
        if (flow.isTcp) {
            const Transport& transport = transports.at(flow.transport);
            senders = transport.senders;
            receivers = transport.receivers;
            if (!source->GetObject<Object>(senders)) source->AggregateObject(Create<Sockets>(source, transport, true));
            if (!target->GetObject<Object>(receivers)) target->AggregateObject(Create<Sockets>(target, transport, false));
        }
        flow.sink = CreateObject<PacketSink>();
        flow.sink->SetAttribute("Protocol", TypeIdValue(receivers));
        flow.sink->SetAttribute("Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), port)));
        target->AddApplication(flow.sink);
        Ptr<Application> application;
        if (flow.isTcp) {
            application = flow.source = CreateObject<BulkSendApplication>();
            application->SetAttribute("MaxBytes", UintegerValue(flow.bytes));
            application->SetAttribute("SendSize", UintegerValue(transports.at(flow.transport).write));
            Simulator::Schedule(Seconds(flow.start) + NanoSeconds(1), &Watch, &flow);
        } else {
            application = CreateObject<OnOffApplication>();
            application->SetAttribute("PacketSize", UintegerValue(flow.payload));
            application->SetAttribute("DataRate", StringValue(flow.rate));
            application->SetAttribute("OnTime", StringValue(flow.on));
            application->SetAttribute("OffTime", StringValue(flow.off));
            // They carry numbers.
            application->SetAttribute("EnableSeqTsSizeHeader", BooleanValue(true));
            flow.sink->SetAttribute("EnableSeqTsSizeHeader", BooleanValue(true));
            flow.sink->TraceConnectWithoutContext("RxWithSeqTsSize", MakeBoundCallback(&Arrived, &flow));
        }
        application->SetAttribute("Protocol", TypeIdValue(senders));
        application->SetAttribute("Remote", AddressValue(InetSocketAddress(to, port)));
        application->SetStartTime(Seconds(flow.start));
        if (flow.stop >= 0.0) application->SetStopTime(Seconds(flow.stop));
        source->AddApplication(application);
    }

    for (double time : snapshots) Simulator::Schedule(Seconds(time), &Snapshot, &flows, &links);
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    recorders.clear();
    Simulator::Destroy();
    std::cout << "END" << std::endl;
    return 0;
}
