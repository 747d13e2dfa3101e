//! A flow, drawn: members in the order in which they can run, each with what it waits for.

use std::collections::HashMap;

use serde_json::Value;

use crate::show::{shown, state};

/// The lines of a drawing. A member stands one step further right than the last of those that it
/// waits for, and names them.
pub(crate) fn draw(members: &[Value], edges: &[Value], colour: bool) -> Vec<String> {
    let mut number: HashMap<&str, usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        // Edges may name members either way.
        for field in ["execution_id", "name"] {
            if let Some(text) = member[field].as_str() {
                number.entry(text).or_insert(at);
            }
        }
    }
    let end = |edge: &Value, field: &str| number.get(edge[field].as_str()?).copied();
    let links: Vec<(usize, usize, &Value)> = edges
        .iter()
        .filter_map(|edge| Some((end(edge, "upstream")?, end(edge, "downstream")?, edge)))
        .collect();
    let depths = depths(members.len(), &links);
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|at| depths[*at]);
    let names: Vec<String> = members.iter().map(name).collect();
    let indent = |at: usize| "   ".repeat(depths[at]);
    let width = order.iter().map(|at| indent(*at).len() + names[*at].chars().count()).max();
    let mut lines = Vec::new();
    for at in order {
        let label = format!("{}{}", indent(at), names[at]);
        let gap = " ".repeat(width.unwrap_or(0).saturating_sub(label.chars().count()));
        let now = state(&members[at]["public_state"], colour);
        let waits = waits(at, &links, &names);
        lines.push(format!("{label}{gap}  {now}{waits}").trim_end().to_owned());
    }
    lines
}

fn name(member: &Value) -> String {
    let name = shown(&member["name"]);
    if name.is_empty() { shown(&member["execution_id"]) } else { name }
}

/// `  <- a, b (failure_only)`.
fn waits(at: usize, links: &[(usize, usize, &Value)], names: &[String]) -> String {
    let of: Vec<String> = links
        .iter()
        .filter(|(_, down, _)| *down == at)
        .map(|(up, _, edge)| match edge["kind"].as_str() {
            None | Some("success_only") => names[*up].clone(),
            Some(kind) => format!("{} ({kind})", names[*up]),
        })
        .collect();
    if of.is_empty() { String::new() } else { format!("  <- {}", of.join(", ")) }
}

/// How many steps lie before each member on the longest way. A graph has no cycle; should a reply
/// tell of one, the members on it stay where they are.
fn depths(members: usize, links: &[(usize, usize, &Value)]) -> Vec<usize> {
    let mut downstreams = vec![Vec::new(); members];
    let mut left = vec![0usize; members];
    for (up, down, _) in links {
        downstreams[*up].push(*down);
        left[*down] += 1;
    }
    let mut depths = vec![0; members];
    let mut ready: Vec<usize> = (0..members).filter(|at| left[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for down in &downstreams[at] {
            depths[*down] = depths[*down].max(depths[at] + 1);
            left[*down] -= 1;
            if left[*down] == 0 {
                ready.push(*down);
            }
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_behind_what_they_wait_for() {
        let member = |name: &str, state: &str| json!({ "name": name, "execution_id": format!("id-{name}"), "public_state": state });
        let members = [
            member("join", "waiting_children"),
            member("a", "completed"),
            member("b", "active"),
            member("split", "completed"),
        ];
        let edge = |up: &str, down: &str, kind: &str| json!({ "upstream": format!("id-{up}"), "downstream": format!("id-{down}"), "kind": kind });
        let edges = [
            edge("split", "a", "success_only"),
            edge("split", "b", "success_only"),
            edge("a", "join", "success_only"),
            edge("b", "join", "always"),
            edge("b", "nobody", "always"),
        ];
        let expected = [
            "split       completed",
            "   a        completed  <- split",
            "   b        active  <- split",
            "      join  waiting_children  <- a, b (always)",
        ];
        assert_eq!(draw(&members, &edges, false), expected);
    }

    #[test]
    fn a_cycle_in_a_reply_does_no_harm() {
        let members = [json!({ "name": "a" }), json!({ "name": "b" })];
        let edges = [
            json!({ "upstream": "a", "downstream": "b" }),
            json!({ "upstream": "b", "downstream": "a" }),
        ];
        assert_eq!(draw(&members, &edges, false).len(), 2);
    }
}
