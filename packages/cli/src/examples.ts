/** The end of a command's help: what one would really type. Each line is a command, or a remark that starts with `#`. */
export const examples = (...lines: string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}\n`
