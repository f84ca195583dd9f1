//! The size of a session's requests over its turns, as a picture.

use ennead_runtime::{
    evaluation::{Request, place_of},
    step4_context_shapers::Stage,
    tokens::Tokens,
};

use super::push_fmt;

/// Size of the drawing, and of the part of it that has the curves, in pixels.
const SIZE: (u64, u64) = (960, 420);
const LEFT: u64 = 70;
const TOP: u64 = 20;
const WIDTH: u64 = 860;
const HEIGHT: u64 = 320;

/// Colours of the six stages, which readers with a colour deficiency can distinguish (Okabe and Ito 2008).
const COLOURS: [&str; 6] = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#cc79a7"];

/// Draws the conversation and what was sent of it, request by request, with a mark where a stage fired, as an SVG
/// without scripts and without references to other files.
pub fn chart(requests: &[Request]) -> String {
    let most = requests.iter().map(|it| it.conversation.0).max().unwrap_or(0).max(1);
    let x = |at: usize| LEFT + WIDTH * at as u64 / requests.len().saturating_sub(1).max(1) as u64;
    let y = |tokens: Tokens| TOP + HEIGHT - HEIGHT * tokens.0.min(most) / most;
    let line = |of: fn(&Request) -> Tokens| {
        let points = requests.iter().enumerate();
        points.map(|(at, it)| format!("{},{}", x(at), y(of(it)))).collect::<Vec<_>>().join(" ")
    };
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Tokens of each request of a session, as said and as sent</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for part in 0..=4 {
        let tokens = Tokens(most * part / 4);
        let (at, right, text) = (y(tokens), LEFT + WIDTH, tokens.0 / 1_000);
        push_fmt(&mut svg, format_args!("<path d=\"M{LEFT} {at}H{right}\" stroke=\"#ddd\"/>"));
        let label = LEFT - 8;
        push_fmt(
            &mut svg,
            format_args!("<text x=\"{label}\" y=\"{at}\" text-anchor=\"end\">{text}k</text>\n"),
        );
    }
    for (of, colour, dashes) in [
        (line(|it| it.conversation), "#999", " stroke-dasharray=\"4 3\""),
        (line(|it| it.sent), "#000", ""),
    ] {
        push_fmt(
            &mut svg,
            format_args!("<polyline points=\"{of}\" fill=\"none\" stroke=\"{colour}\"{dashes}/>\n"),
        );
    }
    for (at, request) in requests.iter().enumerate() {
        for (stage, _) in &request.fired {
            let colour = COLOURS[place_of(*stage)];
            let (x, y) = (x(at), y(request.sent));
            push_fmt(
                &mut svg,
                format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/>\n"),
            );
        }
    }
    legend(&mut svg, requests.len());
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, n_requests: usize) {
    let below = TOP + HEIGHT + 20;
    push_fmt(
        svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{below}\">request 1 to {n_requests}; dashed: tokens of all that \
             was said; solid: tokens that were sent</text>\n"
        ),
    );
    let (mut x, y) = (LEFT, below + 24);
    for stage in Stage::ALL.into_iter().chain([Stage::OverflowReduction]) {
        let (colour, name) = (COLOURS[place_of(stage)], stage.name());
        let (middle, text) = (y - 4, x + 10);
        push_fmt(
            svg,
            format_args!(
                "<circle cx=\"{x}\" cy=\"{middle}\" r=\"4\" fill=\"{colour}\"/>\
                 <text x=\"{text}\" y=\"{y}\">{name}</text>\n"
            ),
        );
        x += 30 + 7 * name.len() as u64;
    }
}
