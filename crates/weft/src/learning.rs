//! Arguments about routing that learns from what hosts receive: what goes with what.

use weft_bundle::failure::Failure;
use weft_routing::{ENGINES, Engine};
use weft_sm::Options;

/// Lets a subnet manager learn from reports that a performance manager makes, if it makes any. One without
/// the other is refused.
pub(crate) fn learning(mut options: Options, reports: Option<u32>) -> anyhow::Result<Options> {
    let routing = &mut options.routing;
    match (reports.is_some(), routing.learns()) {
        (true, true) | (false, false) => return Ok(options),
        (false, true) => {
            let option = if routing.learn_order { "order" } else { "weights" };
            let message = format!("--{option} received takes counts, and no one makes them");
            return Err(Failure::bad_input(message).hint("say --pm --learn-weights SWEEPS"));
        }
        (true, false) => {}
    }
    if !routing.engine.weights.is_empty() {
        return Err(Failure::bad_input("--learn-weights takes the place of weights from a file")
            .hint("leave out --weights and --received"));
    }
    let reads = |engine: &Engine, option| engine.options.contains(&option);
    if !routing.chain.engines().any(|engine| reads(engine, "weights")) {
        let those = |option| {
            let those = ENGINES.iter().filter(|engine| reads(engine, option)).map(|engine| engine.name);
            those.collect::<Vec<_>>().join(", ")
        };
        let named: Vec<_> = routing.chain.engines().map(|engine| engine.name).collect();
        let message = format!("--learn-weights means nothing to {}", named.join(", "));
        let hint = format!(
            "weights are read by {}; with --order received, their order by {}",
            those("weights"),
            those("order")
        );
        return Err(Failure::bad_input(message).hint(hint));
    }
    routing.learn_weights = true;
    Ok(options)
}
