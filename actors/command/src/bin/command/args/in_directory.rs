//! Arguments of another process: what names files there.

use std::path::Path;

use serde::de::IgnoredAny;

use super::Print;

impl Print {
    /// Returns whether an argument names a file that only this process has open, as `/dev/fd/63` does.
    pub(crate) fn names_open_files(&self) -> bool {
        let texts = self.settings.iter().chain(&self.mcp_config).map(Path::new);
        let protocol = &self.protocol;
        let prompts = [&protocol.system_prompt_file, &protocol.append_system_prompt_file];
        let prompts = prompts.into_iter().filter_map(|it| it.as_deref());
        let of_process = |it: &Path| it.starts_with("/dev") || it.starts_with("/proc");
        let paths = self.add_dir.iter().chain(&self.protocol.plugin_dir).map(|it| it.as_path());
        texts.chain(prompts).chain(paths).any(of_process)
    }

    /// Makes paths whole that start from this directory.
    pub(crate) fn in_directory(&mut self, directory: &Path) {
        let whole = |text: &mut String| {
            if let Some(path) = directory.join(&*text).to_str() {
                *text = path.to_owned();
            }
        };
        // As the reader of each tells JSON from a name.
        let is_json = |text: &str| {
            text.trim_start().starts_with('{')
                || (serde_json::from_str::<IgnoredAny>(text).is_ok()
                    && !directory.join(text).exists())
        };
        self.settings.iter_mut().filter(|it| !is_json(it)).for_each(whole);
        let servers = self.mcp_config.iter_mut();
        servers.filter(|it| !it.trim_start().starts_with('{')).for_each(whole);
        let protocol = &mut self.protocol;
        let paths = self.add_dir.iter_mut().chain(&mut protocol.plugin_dir);
        let paths = paths.chain(&mut self.transcripts).chain(&mut protocol.system_prompt_file);
        let paths = paths.chain(&mut protocol.append_system_prompt_file);
        paths.for_each(|it| *it = directory.join(&*it));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::Args;

    // REQ: SUR-3
    #[test]
    fn names_of_files_start_from_the_directory_of_their_process() {
        let line = [
            "ennead",
            "-p",
            "go",
            "--settings",
            "s.json",
            "--mcp-config",
            "m.json",
            "{\"mcpServers\":{}}",
            "--add-dir",
            "a",
            "/b",
            "--transcripts",
            "t",
            "--system-prompt-file",
            "../p.md",
            "--plugin-dir",
            "x",
        ];
        let mut print = Args::try_parse_from(line).unwrap().print;
        print.in_directory("/w".as_ref());
        assert_eq!(print.settings.as_deref(), Some("/w/s.json"));
        assert_eq!(print.mcp_config, ["/w/m.json", "{\"mcpServers\":{}}"]);
        let shown = |it: &std::path::PathBuf| it.display().to_string();
        assert_eq!(print.add_dir.iter().map(shown).collect::<Vec<_>>(), ["/w/a", "/b"]);
        assert_eq!(print.transcripts.as_ref().map(shown).as_deref(), Some("/w/t"));
        let protocol = &print.protocol;
        assert_eq!(protocol.system_prompt_file.as_ref().map(shown).as_deref(), Some("/w/../p.md"));
        assert_eq!(protocol.plugin_dir.iter().map(shown).collect::<Vec<_>>(), ["/w/x"]);
        assert!(!print.names_open_files());
        let line = ["ennead", "-p", "go", "--settings", "/dev/fd/63"];
        assert!(Args::try_parse_from(line).unwrap().print.names_open_files());
        for json in ["{\"a\":1}", " {", "null", "[]"] {
            let mut print =
                Args::try_parse_from(["ennead", "-p", "go", "--settings", json]).unwrap().print;
            print.in_directory("/w".as_ref());
            assert_eq!(print.settings.as_deref(), Some(json));
        }
    }
}
