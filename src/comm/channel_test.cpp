#include "comm/channel.h"

#include <thread>

#include <gtest/gtest.h>

#include "comm/testing.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

using testing_comm::noise;

TEST(Channel, MessagesMatchByPeerAndTagInOrder) {
    ThreadWorld world(3);
    run_ranks(world, [](Transport& transport) {
        Channel channel(transport, Lane::Activation);
        const auto a = noise(1000, 1), b = noise(1000, 2), c = noise(1000, 3);
        if (transport.rank() == 0) {
            channel.send(1, 5, a);
            channel.send(1, 5, b);
            channel.send(2, 6, a);
        } else if (transport.rank() == 2) {
            channel.send(1, 5, c);
            std::vector<std::byte> got(1000);
            channel.receive(0, 6, got);
            require(got == a, "from 0 to 2");
        } else {
            std::vector<std::byte> first(1000), second(1000), third(1000);
            channel.receive(2, 5, third);
            channel.receive(0, 5, first);
            channel.receive(0, 5, second);
            require(first == a && second == b && third == c, "to 1");
        }
    });
}

// Everybody sends to everybody, itself included, in one exchange; sizes differ and some are zero.
TEST(Channel, ExchangesWithEverybodyAtOnce) {
    ThreadWorld world(5);
    run_ranks(world, [](Transport& transport) {
        Channel channel(transport, Lane::Activation);
        const auto size_of_pair = [](Rank from, Rank to) { return (from * 7 + to * 3) % 5 * 1000; };
        std::vector<std::vector<std::byte>> out, in;
        std::vector<Outgoing> sends;
        std::vector<Incoming> receives;
        int64_t sent = 0;
        for (Rank r = 0; r < 5; ++r) {
            out.push_back(noise(size_of_pair(transport.rank(), r), static_cast<uint64_t>(transport.rank() * 10 + r)));
            in.emplace_back(static_cast<size_t>(size_of_pair(r, transport.rank())));
            sent += static_cast<int64_t>(out.back().size());
        }
        for (Rank r = 0; r < 5; ++r) {
            sends.push_back({r, 1, out[static_cast<size_t>(r)]});
            receives.push_back({r, 1, in[static_cast<size_t>(r)]});
        }
        channel.set_label("halo");
        channel.exchange(sends, receives);
        for (Rank r = 0; r < 5; ++r)
            require(
                in[static_cast<size_t>(r)] == noise(size_of_pair(r, transport.rank()), static_cast<uint64_t>(r * 10 + transport.rank())),
                "from {} to {}", r, transport.rank());
        require(channel.counts().at("halo").bytes_of(Traffic::Transfer) == sent, "bytes");
    });
}

TEST(Channel, PostedMessagesAreFinishedLater) {
    ThreadWorld world(2);
    run_ranks(world, [](Transport& transport) {
        Channel channel(transport, Lane::Activation);
        const Rank other = 1 - transport.rank();
        const auto out = noise(4096, static_cast<uint64_t>(transport.rank()));
        std::vector<std::byte> in(4096);
        Posted send = channel.post(Outgoing{other, 0, out});  // both send first
        Posted receive = channel.post(Incoming{other, 0, in});
        while (!channel.done(receive)) std::this_thread::yield();
        channel.finish(receive);
        channel.finish(send);
        require(in == noise(4096, static_cast<uint64_t>(other)), "what the other sent");
    });
}

// A message on one lane that nobody takes does not hold up the other lane.
TEST(Channel, LanesDoNotWaitForEachOther) {
    ThreadWorld world(2);
    run_ranks(world, [](Transport& transport) {
        Channel activation(transport, Lane::Activation), gradient(transport, Lane::Gradient);
        const Rank other = 1 - transport.rank();
        const std::vector<std::byte> big(1 << 20), small(16);
        std::vector<std::byte> big_in(1 << 20), small_in(16);
        Posted stuck = gradient.post(Outgoing{other, 0, big});
        for (int i = 0; i < 100; ++i)
            activation.exchange(std::vector<Outgoing>{{other, 0, small}}, std::vector<Incoming>{{other, 0, small_in}});
        gradient.receive(other, 0, big_in);
        gradient.finish(stuck);
    });
}

TEST(Channel, SizesThatDifferAreAnErrorOnBothSides) {
    ThreadWorld world(2);
    run_ranks(world, [](Transport& transport) {
        Channel channel(transport, Lane::Activation);
        std::vector<std::byte> data(transport.rank() == 0 ? 8 : 16);
        try {
            transport.rank() == 0 ? channel.send(1, 0, data) : channel.receive(0, 0, data);
        } catch (const RunFailed&) {
            throw;
        } catch (const Error&) {
            return;
        }
        fail("rank {} noticed nothing", transport.rank());
    });
}

TEST(Channel, LabelsNest) {
    ThreadWorld world(1);
    Channel channel(world.rank(0), Lane::Gradient);
    const LabelScope outer(channel, "outer");
    {
        const LabelScope inner(channel, std::string("inner"));
        EXPECT_EQ(channel.label(), "inner");
    }
    EXPECT_EQ(channel.label(), "outer");
}

}  // namespace

}  // namespace convoy
