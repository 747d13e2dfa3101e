//! The description of the API as a page to read: no script, nothing loaded from anywhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::Value;

use crate::openapi;

const STYLE: &str = include_str!("reader.css");
/// What the page may do: show itself.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page. It is the same for every request of a process.
pub(crate) fn page() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        let document = serde_json::to_value(openapi::document()).unwrap_or_default();
        let mut page = Page { document: &document, html: String::new() };
        page.whole();
        page.html
    })
}

struct Page<'a> {
    document: &'a Value,
    html: String,
}

impl Page<'_> {
    fn put(&mut self, html: &str) {
        self.html.push_str(html);
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.html.push_str("&lt;"),
                '>' => self.html.push_str("&gt;"),
                '&' => self.html.push_str("&amp;"),
                '"' => self.html.push_str("&quot;"),
                c => self.html.push(c),
            }
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        let _ = write!(self.html, "<{name}>");
        self.text(text);
        let _ = write!(self.html, "</{name}>");
    }

    fn whole(&mut self) {
        let document = self.document;
        self.put("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
        self.put("<meta name=\"viewport\" content=\"width=device-width\">");
        self.put("<title>FlowFabric API</title><style>");
        self.put(STYLE);
        self.put("</style><header><h1>FlowFabric API</h1><p>");
        self.text(document["info"]["description"].as_str().unwrap_or(""));
        self.put("</p><p>For programs: <a href=\"/openapi.json\">openapi.json</a></p></header>");
        let groups = groups(document);
        self.put("<nav>");
        for name in groups.keys() {
            let _ = write!(self.html, "<a href=\"#{name}\">{name}</a> ");
        }
        self.put("<a href=\"#forms\">forms</a></nav><main>");
        for (name, operations) in &groups {
            let _ = write!(self.html, "<section id=\"{name}\"><h2>{name}</h2>");
            for (path, method, operation) in operations {
                self.operation(path, method, operation);
            }
            self.put("</section>");
        }
        self.forms();
        self.put("</main></html>\n");
    }

    fn operation(&mut self, path: &str, method: &str, operation: &Value) {
        let id = operation["operationId"].as_str().unwrap_or("");
        let _ = write!(self.html, "<details id=\"{id}\"><summary><b class=\"{method}\">");
        self.text(&method.to_uppercase());
        self.put("</b> ");
        self.element("code", path);
        self.put(" <span>");
        self.text(operation["summary"].as_str().unwrap_or(""));
        self.put("</span></summary>");
        if let Some(description) = operation["description"].as_str() {
            self.element("p", &description.replace('`', ""));
        }
        self.parameters(&operation["parameters"]);
        if let Some(content) = operation["requestBody"]["content"].as_object() {
            self.element("h3", "Request");
            self.contents(content);
        }
        let replies = operation["responses"].as_object().into_iter().flatten();
        for (status, reply) in replies.filter(|(status, _)| *status != "default") {
            self.element("h3", &format!("Reply {status}"));
            if let Some(content) = reply["content"].as_object() {
                self.contents(content);
            }
        }
        self.put("</details>");
    }

    fn parameters(&mut self, parameters: &Value) {
        let Some(parameters) = parameters.as_array().filter(|all| !all.is_empty()) else { return };
        self.put("<table><tr><th>parameter<th>in<th>type<th></tr>");
        for parameter in parameters {
            self.put("<tr><td>");
            self.element("code", parameter["name"].as_str().unwrap_or(""));
            self.put("<td>");
            self.text(parameter["in"].as_str().unwrap_or(""));
            self.put("<td>");
            self.kind(&parameter["schema"]);
            self.put("<td>");
            self.text(parameter["schema"]["description"].as_str().unwrap_or(""));
            self.put("</tr>");
        }
        self.put("</table>");
    }

    fn contents(&mut self, content: &serde_json::Map<String, Value>) {
        for (media_type, form) in content {
            self.put("<p>");
            self.element("code", media_type);
            self.put(" ");
            self.kind(&form["schema"]);
            self.put("</p>");
            self.fields(&form["schema"]);
        }
    }

    /// The fields of a form, wherever they are described.
    fn fields(&mut self, schema: &Value) {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fields(part);
        }
        let document = self.document;
        let schema = schema["$ref"].as_str().map_or(schema, |name| resolve(document, name));
        let Some(fields) = schema["properties"].as_object() else { return };
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        self.put("<table><tr><th>field<th>type<th></tr>");
        for (name, field) in fields {
            self.put("<tr><td>");
            self.element("code", name);
            if required.iter().any(|required| *required == name) {
                self.put(" <em>required</em>");
            }
            self.put("<td>");
            self.kind(field);
            self.put("<td>");
            self.text(description(field));
            self.put("</tr>");
        }
        self.put("</table>");
    }

    /// What a field holds, in a few words, with links to the forms.
    fn kind(&mut self, schema: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or("");
            let _ = write!(self.html, "<a href=\"#form-{name}\">{name}</a>");
            return;
        }
        for key in ["oneOf", "anyOf", "allOf"] {
            if let Some(choices) = schema[key].as_array() {
                self.joined(choices, if key == "allOf" { " and " } else { " or " });
                return;
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            self.text(&values.join(" or "));
            return;
        }
        match &schema["type"] {
            Value::String(name) if name == "array" => {
                self.put("list of ");
                self.kind(&schema["items"]);
            }
            Value::String(name) => self.text(name),
            Value::Array(names) => {
                let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
                self.text(&names.join(" or "));
            }
            _ => self.put("anything"),
        }
    }

    fn joined(&mut self, choices: &[Value], between: &str) {
        for (at, choice) in choices.iter().enumerate() {
            if at > 0 {
                self.put(between);
            }
            self.kind(choice);
        }
    }

    fn forms(&mut self) {
        self.put("<section id=\"forms\"><h2>forms</h2>");
        let forms = self.document["components"]["schemas"].as_object();
        for (name, form) in forms.into_iter().flatten() {
            let _ = write!(
                self.html,
                "<details id=\"form-{name}\"><summary><code>{name}</code> <span>"
            );
            self.text(description(form));
            self.put("</span></summary>");
            if form["properties"].is_object() {
                self.fields(form);
            } else {
                self.put("<p>");
                self.kind(form);
                self.put("</p>");
            }
            self.put("</details>");
        }
        self.put("</section>");
    }
}

type Operation<'a> = (&'a str, &'a str, &'a Value);

/// Operations by the first word of their path.
fn groups(document: &Value) -> BTreeMap<&str, Vec<Operation<'_>>> {
    let mut groups: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let group = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
        for (method, operation) in item.as_object().into_iter().flatten() {
            groups.entry(group.unwrap_or("server")).or_default().push((path, method, operation));
        }
    }
    groups
}

fn resolve<'a>(document: &'a Value, reference: &str) -> &'a Value {
    &document["components"]["schemas"][reference.rsplit('/').next().unwrap_or("")]
}

/// Of the field itself or of the one form that it may hold.
fn description(field: &Value) -> &str {
    let choices = field["oneOf"].as_array().into_iter().flatten();
    let mut told = std::iter::once(field).chain(choices);
    told.find_map(|schema| schema["description"].as_str()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_route_and_leads_nowhere_else() {
        let page = page();
        for (method, path) in crate::table::served() {
            assert!(page.contains(&format!("<code>{path}</code>")), "{method} {path}");
        }
        assert!(
            !page.contains("<script") && !page.contains("http://") && !page.contains("https://")
        );
        for link in page.split("href=\"#").skip(1) {
            let (target, _) = link.split_once('"').unwrap();
            assert!(page.contains(&format!("id=\"{target}\"")), "{target} is linked to");
        }
    }
}
