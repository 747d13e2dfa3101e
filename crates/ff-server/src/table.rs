//! The table of all routes.

use crate::route::{Route, Verb};
use crate::routes::GROUPS;

/// All routes.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// The routes by path, each with its methods.
pub(crate) fn by_path() -> Vec<(&'static str, Vec<&'static Route>)> {
    let mut paths: Vec<(&'static str, Vec<&'static Route>)> = Vec::new();
    for route in all() {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, routes)) => routes.push(route),
            None => paths.push((route.path, vec![route])),
        }
    }
    paths
}

/// The value of `Allow` for a path with these routes.
pub(crate) fn allowed(routes: &[&Route]) -> String {
    let mut methods: Vec<&str> = routes.iter().map(|route| route.verb.as_str()).collect();
    if methods.contains(&Verb::Get.as_str()) {
        methods.push("HEAD");
    }
    methods.join(", ")
}

/// Method and path of every route that is served.
pub fn served() -> Vec<(&'static str, &'static str)> {
    all().map(|route| (route.verb.as_str(), route.path)).collect()
}
