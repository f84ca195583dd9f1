//! Random shell commands.

/// Grammar from a seed; the same seed gives the same command.
pub(super) struct Grammar(u64);

/// Texts that spoil a command.
const SPOILS: [&str; 37] = [
    "\"", "'", "\\", "`", "$", "$(", ")", "(", "{", "}", ";", "&", "|", "\n", "#", " ", "<", ">",
    "<<X\n", "\nX\n", "((", "))", "[[", "]]", "=", "!", "${", "$'", "\\\n", "esac", "done", "\t",
    "x=", "&&", "<&-", ">&-", "<& -",
];

impl Grammar {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// A whole command, now and then with something in it that does not belong there.
    pub(super) fn command(&mut self) -> String {
        let depth = 1 + self.below(3);
        let mut text = self.list(depth);
        for _ in 0..[0, 0, 0, 1, 1, 2][self.below(6)] {
            let places: Vec<usize> = text.char_indices().map(|it| it.0).collect();
            let at = places[self.below(places.len())];
            match self.below(3) {
                0 => drop(text.remove(at)),
                1 => text.insert_str(at, self.of(&SPOILS)),
                _ => {
                    let spoil = self.of(&SPOILS);
                    let width = text[at..].chars().next().map_or(0, char::len_utf8);
                    text.replace_range(at..at + width, spoil);
                }
            }
        }
        text
    }

    fn list(&mut self, depth: usize) -> String {
        let mut text = self.pipeline(depth);
        for _ in 0..self.below(3) {
            let joint = self.of(&["; ", " && ", " || ", "\n", " & ", ";\n", " # c ' \" $(\n"]);
            text = text + joint + &self.pipeline(depth);
        }
        text
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let begin = self.of(&["", "", "", "", "! ", "time ", "time -p "]);
        let mut text = begin.to_owned() + &self.any(depth);
        if self.below(4) == 0 {
            text = text + self.of(&[" | ", " |& ", "|\n"]) + &self.any(depth);
        }
        text
    }

    fn any(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(3) > 0 {
            return self.simple(depth);
        }
        let next = depth - 1;
        let (a, b) = (self.list(next), self.list(next));
        let text = match self.below(18) {
            0 => format!("( {a} )"),
            1 => format!("{{ {a}; }}"),
            2 => format!("if {a}; then {b}; fi"),
            3 => format!("if {a}; then :; else {b}\nfi"),
            4 => format!("while {a}; do {b}; break; done"),
            5 => format!("until ! {a}\ndo {b}; break; done"),
            6 => format!("for i in 1 2; do {a}; done"),
            7 => format!("for i do {a}; done; {b}"),
            8 => format!("case x in y) {a};; x|z) {b};; esac"),
            9 => format!("case x in (x) {a};& q) {b}\nesac"),
            10 => format!("f() {{ {a}; }}; f; {b}"),
            11 => format!("function g {{ {a}; }}\ng"),
            12 => format!("for ((i=0; i<1; i++)); do {a}; done"),
            13 => format!("select s in {}; do {a}; break; done", self.word(next)),
            14 => format!("coproc {{ {a}; }}"),
            // Two brackets that are no sum, with a here-document in them or announced in front of them.
            15 => format!("((aa ok <<X\n{a}\nX\n) )"),
            16 => format!("bb ok <<'X'; (({a}\n{b}\n) )\nxx\nX\n"),
            _ => format!("((1 + 2)) && [[ -n {} && x == x* ]] || {a}", self.word(next)),
        };
        let more = self.of(&["", "", "", " >/dev/null", " 2>&1", " > f"]);
        text + more
    }

    fn simple(&mut self, depth: usize) -> String {
        let before = self.of(&[
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "LANG=C ",
            ">/dev/null ",
            "2>&1 ",
            "<f ",
            "<&-",
            ">&-",
            "3<& -",
            "x=1 ",
            "timeout 5 ",
            "nice ",
            "command ",
            "env ",
            "nohup ",
            "xargs ",
        ]);
        let mut text = before.to_owned() + &self.program();
        text.push(' ');
        text += if self.below(12) == 0 { "no" } else { "ok" };
        for _ in 0..self.below(3) {
            text.push_str(self.of(&[" ", "  ", "\t", " \\\n"]));
            text += &self.word(depth);
        }
        if depth > 0 && self.below(8) == 0 {
            let inner = self.list(depth - 1);
            let end = self.of(&["X", "'X'", "\"X\"", "\\X"]);
            return format!("{text} <<{end}\n$({inner})\nX\n");
        }
        let after = self.of(&[
            "",
            "",
            "",
            "",
            "",
            " >/dev/null",
            " 2>&1",
            " >f",
            " >> f",
            " &>f",
            " <<<a",
            " >| f",
            " 3>&-",
        ]);
        text + after
    }

    fn program(&mut self) -> String {
        let name = match self.below(14) {
            0 => self.of(&["xx", "yy"]),
            1 => self.of(&[
                "echo", "true", "eval", "sh -c", "bash -c", "cat", "$x", "cd", "read", "printf",
                "test", ":",
            ]),
            _ => self.of(&["aa", "bb", "cc"]),
        };
        match self.below(10) {
            0 if name.len() == 2 => format!("{}\"{}\"", &name[..1], &name[1..]),
            1 if name.len() == 2 => format!("{}\\{}", &name[..1], &name[1..]),
            2 if name.len() == 2 => format!("$'\\x{:02x}'{}", name.as_bytes()[0], &name[1..]),
            3 if name.len() == 2 => format!("{}\\\n{}", &name[..1], &name[1..]),
            _ => name.to_owned(),
        }
    }

    fn word(&mut self, depth: usize) -> String {
        let inner = |it: &mut Self| match depth {
            0 => "aa ok".to_owned(),
            _ => it.list(depth - 1),
        };
        match self.below(24) {
            0 => format!("$({})", inner(self)),
            1 => format!("\"$({})\"", inner(self)),
            2 => {
                let inner = inner(self);
                let escaped = inner.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$");
                format!("`{escaped}`")
            }
            3 => format!("<({})", inner(self)),
            4 => format!("${{x:-$({})}}", inner(self)),
            5 => format!("\"${{x:-$({})}}\"", inner(self)),
            6 => format!("${{y#$({})}}", inner(self)),
            7 => format!("'{}'", inner(self).replace('\'', "")),
            8 => "$((1 + 2))".into(),
            9 => format!("$(( $({}) + 1 ))", inner(self)),
            10 => format!("$((({})))", inner(self)),
            11 => "{a,b}".into(),
            12 => "${x}".into(),
            13 => "\"a b\"".into(),
            14 => "'it'\\''s'".into(),
            15 => "$'a\\'b\\n'".into(),
            16 => "${#x}".into(),
            17 => "a#b".into(),
            18 => format!("x=$({})", inner(self)),
            _ => self
                .of(&["a", "-x", "*.c", "a=b", "[a]", "~", "\"$x\"", "$1", "a\\ b", "}"])
                .to_owned(),
        }
    }
}
