use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sessile_agent::{FunctionTool, LlmAgent, ToolContext};
use sessile_session::BoxError;

use super::{built, scripted};

/// Stores a cart in the session (`cart`), the number of orders of a user (`user:orders`), and how
/// often each item was sold (`app:sold:…`).
pub(super) fn agent() -> LlmAgent {
    let add = FunctionTool::new(
        "add_item",
        "Puts something into the cart.",
        async |item: Item, ctx: ToolContext| {
            let name = item.item.trim().to_lowercase();
            let cart = ctx.state().try_modify("cart", Vec::new(), |mut cart: Vec<String>| {
                cart.push(name.clone());
                cart
            })?;
            Ok::<_, BoxError>(described(&name, &cart))
        },
    );
    let remove = FunctionTool::new(
        "remove_item",
        "Takes something out of the cart.",
        async |item: Item, ctx: ToolContext| {
            let name = item.item.trim().to_lowercase();
            let mut cart = cart(&ctx)?;
            let Some(place) = cart.iter().position(|there| *there == name) else {
                return Err(BoxError::from(format!("there is no {name} in the cart")));
            };
            cart.remove(place);
            ctx.state().try_set("cart", &cart)?;
            Ok(described(&name, &cart))
        },
    );
    let checkout =
        FunctionTool::new("checkout", "Orders what is in the cart.", async |_: Nothing, ctx: ToolContext| {
            let cart = cart(&ctx)?;
            if cart.is_empty() {
                return Err(BoxError::from("the cart is empty"));
            }
            // Other sessions write the same keys concurrently: `add` is computed by the store at
            // the commit, so no increment is lost.
            for item in &cart {
                ctx.state().try_add(format!("app:sold:{item}"), 1)?;
            }
            ctx.state().try_add("user:orders", 1)?;
            let orders: Option<u64> = ctx.state().try_get("user:orders")?;
            ctx.state().remove("cart");
            Ok(json!({ "items": cart.join(", "), "orders": orders }))
        });
    built(
        scripted("shop", include_str!("shop.yaml"))
            .description("A shop: a cart for each session, orders for each user, sales for everyone.")
            .instruction("You sell things. The cart holds: {cart?}. Orders so far: {user:orders?}.")
            .tool(add)
            .tool(remove)
            .tool(checkout),
    )
}

/// The cart; it is an error if the key does not hold a list.
fn cart(ctx: &ToolContext) -> Result<Vec<String>, BoxError> {
    let cart: Option<Vec<String>> = ctx.state().try_get("cart")?;
    Ok(cart.unwrap_or_default())
}

fn described(item: &str, cart: &[String]) -> Value {
    let cart = if cart.is_empty() { "nothing".to_owned() } else { cart.join(", ") };
    json!({ "item": item, "cart": cart })
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// What it is called.
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}
