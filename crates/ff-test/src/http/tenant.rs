//! Somebody with a key.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{Answer, Site, merged};

/// A key, and who calls with it.
pub struct Tenant<'a> {
    pub site: &'a Site,
    pub key_id: String,
    pub key: String,
}

impl Site {
    /// A key that may do everything; the first of a store.
    pub async fn owner(&self) -> Tenant<'_> {
        let made = self.post("/v1/keys", json!({ "name": "owner" })).await;
        Tenant::of(self, &made.expect(201))
    }
}

impl<'a> Tenant<'a> {
    fn of(site: &'a Site, made: &Value) -> Self {
        let text = |field: &str| made[field].as_str().expect("a key").to_owned();
        Self { site, key_id: text("key_id"), key: text("key") }
    }

    /// Another key, made by this one.
    pub async fn makes(&self, fields: Value) -> Tenant<'a> {
        let body = merged(json!({ "name": "other" }), fields);
        let made = self.post("/v1/keys", body).await;
        Tenant::of(self.site, &made.expect(201))
    }

    /// The same key at another server.
    pub fn at<'b>(&self, site: &'b Site) -> Tenant<'b> {
        Tenant { site, key_id: self.key_id.clone(), key: self.key.clone() }
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.site.request(method, path).bearer_auth(&self.key)
    }

    pub async fn with_body(&self, method: &str, path: &str, body: Value) -> Answer {
        self.site.send(self.request(method, path).body(body.to_string())).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.site.send(self.request("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.with_body("POST", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.site.send(self.request("DELETE", path)).await
    }

    /// Submits: the id.
    pub async fn submit(&self, lane: &str) -> String {
        let body = json!({ "lane": lane, "kind": "k" });
        let reply = self.post("/v1/executions", body).await.expect(201);
        reply["execution_id"].as_str().expect("an id").to_owned()
    }
}
