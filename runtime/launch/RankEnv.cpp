//===- RankEnv.cpp - which rank this process is ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/RankEnv.h"

#include "runtime/launch/HostList.h"

#include <charconv>
#include <cstdlib>
#include <netdb.h>
#include <unistd.h>

namespace reckon {
namespace {

class Reader {
public:
  explicit Reader(const Surroundings &from) : from_(from) {}

  std::string text(const char *name) const {
    return from_.variable(name).value_or("");
  }
  bool has(const char *name) const { return !text(name).empty(); }

  /// A number of [low, high]; `fallback` (when given) if it is not set.
  Result<int> number(const char *name, long low, long high,
                     std::optional<int> fallback = std::nullopt) const {
    std::string value = text(name);
    if (value.empty() && fallback)
      return *fallback;
    long parsed = 0;
    auto [stop, code] =
        std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (code == std::errc() && stop == value.data() + value.size() &&
        parsed >= low && parsed <= high)
      return static_cast<int>(parsed);
    return makeError(ExitCode::BadSpec,
                     std::string("expected ") + name + " from " +
                         std::to_string(low) + " to " + std::to_string(high) +
                         ", got " +
                         (value.empty() ? "nothing" : "'" + value + "'") +
                         "; set it for every rank, or use --local N");
  }

  bool resolves(const std::string &host) const { return from_.resolves(host); }

private:
  const Surroundings &from_;
};

constexpr long kMostRanks = 1 << 24;

/// RECKON_MASTER_* or MASTER_*; empty when neither is set. A RECKON address may
/// be complete ("unix:@name", "tcp:host:port").
Result<std::string> explicitMaster(const Reader &env, int derivedPort) {
  for (auto [address, port] :
       {std::pair("RECKON_MASTER_ADDR", "RECKON_MASTER_PORT"),
        std::pair("MASTER_ADDR", "MASTER_PORT")}) {
    std::string host = env.text(address);
    if (host.empty())
      continue;
    if (host.rfind("unix:", 0) == 0 || host.rfind("tcp:", 0) == 0)
      return host;
    std::optional<int> fallback;
    if (derivedPort)
      fallback = derivedPort;
    Result<int> number = env.number(port, 1, 65535, fallback);
    RECKON_TRY(number);
    return comm::Address{false, host, *number}.text();
  }
  return std::string();
}

Result<RankEnv> readPlain(const Reader &env) {
  RankEnv out;
  Result<int> world = env.number("WORLD_SIZE", 1, kMostRanks);
  RECKON_TRY(world);
  Result<int> rank = env.number("RANK", 0, *world - 1);
  RECKON_TRY(rank);
  Result<int> localWorld = env.number("LOCAL_WORLD_SIZE", 1, *world, *world);
  RECKON_TRY(localWorld);
  Result<int> localRank =
      env.number("LOCAL_RANK", 0, *localWorld - 1, *rank % *localWorld);
  RECKON_TRY(localRank);
  out.rank = *rank;
  out.world = *world;
  out.localRank = *localRank;
  out.localWorld = *localWorld;
  out.nonce = env.text("RECKON_RUN_NONCE");
  if (out.nonce.empty())
    out.nonce = env.text("TORCHELASTIC_RUN_ID");
  if (out.world == 1)
    return out;
  Result<std::string> master = explicitMaster(env, 0);
  RECKON_TRY(master);
  if (master->empty())
    return makeError(ExitCode::Environment,
                     "expected RECKON_MASTER_ADDR and RECKON_MASTER_PORT (or "
                     "MASTER_ADDR and MASTER_PORT) beside WORLD_SIZE=" +
                         std::to_string(out.world) +
                         ", got neither; set them to a host and a free port "
                         "of rank 0, the same for all ranks");
  out.master = *master;
  return out;
}

std::string stepNodes(const Reader &env) {
  std::string list = env.text("SLURM_STEP_NODELIST");
  return list.empty() ? env.text("SLURM_NODELIST") : list;
}

/// The first node's name, or the launch node's address where node names do not
/// resolve (several nodes on one host).
Result<std::string> slurmMaster(const Reader &env, int port,
                                const std::string &nonce) {
  if (env.text("SLURM_STEP_NUM_NODES") == "1")
    return "unix:@reckon-" + nonce.substr(0, 80);
  std::string list = stepNodes(env);
  std::string host;
  if (!list.empty()) {
    Result<std::vector<std::string>> hosts = expandHostList(list);
    RECKON_TRY(hosts);
    host = hosts->front();
  }
  if (host.empty() || !env.resolves(host)) {
    std::string launch = env.text("SLURM_LAUNCH_NODE_IPADDR");
    if (launch.empty())
      return makeError(ExitCode::Environment,
                       "expected the first node of '" + list +
                           "' to resolve, got no address for '" + host +
                           "'; set RECKON_MASTER_ADDR");
    host = launch;
  }
  return comm::Address{false, host, port}.text();
}

Result<RankEnv> readSlurm(const Reader &env) {
  RankEnv out;
  const char *tasks =
      env.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Result<int> world = env.number(tasks, 1, kMostRanks);
  RECKON_TRY(world);
  Result<int> rank = env.number("SLURM_PROCID", 0, *world - 1);
  RECKON_TRY(rank);
  Result<int> node = env.number("SLURM_NODEID", 0, kMostRanks, 0);
  RECKON_TRY(node);
  int onNode = *world;
  std::string counts = env.text("SLURM_STEP_TASKS_PER_NODE");
  if (counts.empty())
    counts = env.text("SLURM_TASKS_PER_NODE");
  if (!counts.empty()) {
    Result<std::vector<int>> perNode = expandTaskCounts(counts);
    RECKON_TRY(perNode);
    if (static_cast<size_t>(*node) < perNode->size())
      onNode = (*perNode)[static_cast<size_t>(*node)];
    out.tasksPerNode = std::move(*perNode);
  }
  if (std::string list = stepNodes(env); !list.empty()) {
    Result<std::vector<std::string>> nodes = expandHostList(list);
    RECKON_TRY(nodes);
    out.nodes = std::move(*nodes);
  }
  Result<int> localRank = env.number("SLURM_LOCALID", 0, kMostRanks, 0);
  RECKON_TRY(localRank);
  out.rank = *rank;
  out.world = *world;
  out.localRank = *localRank;
  out.localWorld = onNode;

  // Job ids start at 1 in a fresh cluster and come again; srun's own port and
  // the restart count tell apart what the ids do not.
  std::string job = env.text("SLURM_JOB_ID"), step = env.text("SLURM_STEP_ID");
  Result<int> restarts = env.number("SLURM_RESTART_COUNT", 0, 1 << 30, 0);
  RECKON_TRY(restarts);
  out.restarts = *restarts;
  out.job = job + "." + step;
  out.node = env.text("SLURMD_NODENAME");
  // Only where it agrees with what is known for sure are other ranks' nodes
  // worth naming: a cyclic distribution puts them elsewhere.
  if (std::string at = out.nodeOf(*rank);
      !at.empty() && !out.node.empty() && at != out.node)
    out.nodes.clear();
  out.nonce = "slurm-" + job + "." + step + "-" +
              env.text("SLURM_SRUN_COMM_PORT") + "-" +
              env.text("SLURM_RESTART_COUNT") + "-" +
              env.text("RECKON_RUN_NONCE");
  if (out.world == 1)
    return out;
  // Below the range from which kernels take ports for outgoing connections.
  long number = 37 * std::atol(job.c_str()) + std::atol(step.c_str());
  int port = 20000 + static_cast<int>(number % 10000);
  if (env.has("RECKON_MASTER_PORT")) {
    Result<int> given = env.number("RECKON_MASTER_PORT", 1, 65535);
    RECKON_TRY(given);
    port = *given;
  }
  Result<std::string> master = explicitMaster(env, port);
  RECKON_TRY(master);
  if (master->empty())
    master = slurmMaster(env, port, out.nonce);
  RECKON_TRY(master);
  out.master = *master;
  return out;
}

} // namespace

static std::string hostName() {
  char name[256] = "";
  (void)!::gethostname(name, sizeof name - 1);
  return name;
}

const Surroundings &systemSurroundings() {
  static const Surroundings system{
      [](const char *name) -> std::optional<std::string> {
        const char *value = std::getenv(name);
        if (!value)
          return std::nullopt;
        return std::string(value);
      },
      [](const std::string &host) {
        addrinfo *found = nullptr;
        bool good = getaddrinfo(host.c_str(), nullptr, nullptr, &found) == 0;
        if (found)
          freeaddrinfo(found);
        return good;
      },
      hostName()};
  return system;
}

std::string RankEnv::nodeOf(int rank) const {
  // Block distribution, Slurm's default.
  int begin = 0;
  for (size_t i = 0; i < tasksPerNode.size() && i < nodes.size(); ++i) {
    begin += tasksPerNode[i];
    if (rank < begin)
      return nodes[i];
  }
  return "";
}

std::string RankEnv::describe(int rank) const {
  std::string at = nodeOf(rank);
  return "rank " + std::to_string(rank) + (at.empty() ? "" : " (" + at + ")");
}

Result<std::optional<RankEnv>> readRankEnv(const Surroundings &from) {
  Reader env(from);
  bool plain = env.has("RANK") || env.has("WORLD_SIZE");
  // A batch script has some of Slurm's variables too; only a step has this.
  bool slurm = env.has("SLURM_PROCID") && env.has("SLURM_STEP_ID");
  if (!plain && !slurm)
    return std::optional<RankEnv>();
  Result<RankEnv> read = plain ? readPlain(env) : readSlurm(env);
  RECKON_TRY(read);
  if (read->node.empty())
    read->node = from.hostName;
  return std::optional<RankEnv>(*read);
}

Result<comm::WorldOptions> worldOptions(const RankEnv &env) {
  comm::WorldOptions options;
  options.rank = env.rank;
  options.world = env.world;
  options.master = env.master;
  options.nonce = env.nonce;
  Result<comm::Transport> transport = comm::transportFromEnvironment();
  RECKON_TRY(transport);
  options.transport = *transport;
  if (const char *limit = std::getenv("RECKON_MEET_LIMIT_S"); limit && *limit) {
    char *end = nullptr;
    options.timeoutSeconds = std::strtod(limit, &end);
    if (*end || !(options.timeoutSeconds > 0))
      return makeError(ExitCode::BadSpec,
                       "expected RECKON_MEET_LIMIT_S to be seconds above 0, "
                       "got '" +
                           std::string(limit) + "'");
  }
  for (int rank = 0; !env.nodes.empty() && rank < env.world; ++rank)
    options.hosts.push_back(env.nodeOf(rank));
  return options;
}

} // namespace reckon
