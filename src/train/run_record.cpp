#include "train/run_record.h"

#include "base/file.h"
#include "base/json.h"
#include "exec/share.h"
#include "program/memory_profile.h"
#include "program/plan_report.h"

namespace convoy {

namespace {

std::vector<RankReport> told_by_all(const Program& program, Link* link) {
    const RankReport mine = report_rank(program);
    if (!link || link->size() == 1) return {mine};
    const std::string text = to_json(mine).dump();
    std::vector<RankReport> all;
    for (Rank rank = 0; rank < link->size(); ++rank)
        all.push_back(rank_report_from_json(Json::parse(share_text(link, rank, rank == link->rank() ? text : ""))));
    return all;
}

}  // namespace

void write_run_record(const std::filesystem::path& run_dir, const RunRecord& record) {
    Link* const link = record.session.link;
    const auto ranks = told_by_all(record.program, link);
    if (link && link->rank() > 0) return;
    const PlanReport report = report_plan(record.graph, record.session.plan, ranks);
    const Json placement = placement_document({.model = record.config.model,
                                               .batch = record.config.batch,
                                               .spec = record.config.plan,
                                               .backend = record.session.backend,
                                               .dtype = record.session.dtype},
                                              {record.session.plan, record.unfollowed}, report);
    write_file(run_dir / "placement.json", placement.dump(1) + "\n");
    write_file(run_dir / "memory.json", to_json(memory_profile(record.program)).dump() + "\n");
}

}  // namespace convoy
