#include "tune/cost_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "program/key.h"

namespace convoy {

namespace {

double seconds_in(const Json& json, const std::string& what) {
    require(json.is_number() && std::isfinite(json.get<double>()) && json.get<double>() >= 0, "expected the seconds of {}, found {}", what,
            json.dump());
    return json.get<double>();
}

const Json& object_in(const Json& json, const char* name) {
    require(json.is_object() && json.contains(name) && json[name].is_object(), "expected an object \"{}\"", name);
    return json[name];
}

}  // namespace

void CostTable::add(const CostTable& other) {
    for (const auto& [problem, candidates] : other.kernels) kernels[problem].insert(candidates.begin(), candidates.end());
    copies.insert(other.copies.begin(), other.copies.end());
    verdicts.insert(other.verdicts.begin(), other.verdicts.end());
}

Json to_json(const CostTable& table) {
    Json kernels = Json::object(), copies = Json::object(), verdicts = Json::object();
    for (const auto& [problem, candidates] : table.kernels) {
        Json entry = Json::object();
        for (const auto& [candidate, seconds] : candidates) entry[candidate] = seconds;
        kernels[problem] = std::move(entry);
    }
    for (const auto& [copy, seconds] : table.copies) copies[copy] = seconds;
    for (const auto& [program, verdict] : table.verdicts)
        verdicts[program] = {{"untuned", verdict.untuned_seconds}, {"tuned", verdict.tuned_seconds}};
    return {{"kernels", std::move(kernels)}, {"copies", std::move(copies)}, {"programs", std::move(verdicts)}};
}

CostTable cost_table_from_json(const Json& json) {
    CostTable table;
    for (const auto& [problem, candidates] : object_in(json, "kernels").items()) {
        require(candidates.is_object(), "expected the candidates of {}, found {}", problem, candidates.dump());
        for (const auto& [candidate, seconds] : candidates.items()) table.kernels[problem][candidate] = seconds_in(seconds, candidate);
    }
    for (const auto& [copy, seconds] : object_in(json, "copies").items()) table.copies[copy] = seconds_in(seconds, copy);
    for (const auto& [program, verdict] : object_in(json, "programs").items()) {
        require(verdict.is_object() && verdict.contains("untuned") && verdict.contains("tuned"), "expected the times of {}, found {}",
                program, verdict.dump());
        table.verdicts[program] = {seconds_in(verdict["untuned"], program), seconds_in(verdict["tuned"], program)};
    }
    return table;
}

Json to_json(const MeasuredCosts& costs) {
    Json json = to_json(costs.table());
    json["copy_bytes_per_second"] = costs.copy_bytes_per_second();
    json["copy_weight"] = costs.copy_weight();
    return json;
}

MeasuredCosts measured_costs_from_json(const Json& json) {
    const auto number = [&](const char* name) {
        require(json.is_object() && json.contains(name) && json[name].is_number(), "expected a number \"{}\"", name);
        return json[name].get<double>();
    };
    const double rate = number("copy_bytes_per_second"), weight = number("copy_weight");
    return {std::make_shared<CostTable>(cost_table_from_json(json)), rate, weight};
}

double MeasuredCosts::seconds(const Problem& problem, const Candidate& candidate) const {
    const auto known = table_->kernels.find(key_of(problem));
    if (known == table_->kernels.end() || known->second.empty()) return candidate.seconds;
    const auto found = known->second.find(key_of(candidate));
    if (found != known->second.end()) return found->second;
    double slowest = 0;
    for (const auto& entry : known->second) slowest = std::max(slowest, entry.second);
    return std::max(slowest, candidate.seconds);
}

double MeasuredCosts::copy_seconds(const CopyProblem& copy) const {
    const auto found = table_->copies.find(key_of(copy));
    return copy_weight_ * (found != table_->copies.end() ? found->second : estimated_copy_seconds(copy, copy_bytes_per_second_));
}

}  // namespace convoy
