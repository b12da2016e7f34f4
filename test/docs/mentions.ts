/** What a document names that a reader would follow or type. */
export type Mentions = {
  /** Targets of relative links, without the anchor. */
  links: string[]
  /** Words in code style that read like a path or a file name. */
  paths: string[]
  /** Commands, one line each, from code style and from shell blocks. */
  commands: string[]
}

const SHELL_BLOCKS = new Set(['', 'sh', 'bash', 'shell', 'console'])
/** `tutti = 1000` is a number of a field, no command. */
const COMMAND = /^(?:npx )?(?:tutti|pnpm|npm)(?: (?!=)|$)/
const PATH = /^\.?[\w@.-]+(?:\/[\w@.*-]+)*\/?$/
const FILE = /\.(?:md|ts|mts|mjs|proto|json|yaml)$/
/** A name that stands for many. */
const PLACEHOLDER = /[<>{}…]|NNNN|\.\.\.|vX\.Y|-vN\b/

export function findMentions(markdown: string): Mentions {
  const links: string[] = []
  const paths: string[] = []
  const commands: string[] = []
  const prose = markdown.replaceAll(
    /^```([^\n]*)\n([\s\S]*?)^```/gm,
    (_all, language: string, body: string) => {
      if (SHELL_BLOCKS.has(language.trim())) commands.push(...shellLines(body))
      return ''
    },
  )
  for (const [, code = ''] of prose.matchAll(/`([^`\n]+)`/g)) {
    if (COMMAND.test(code)) commands.push(code)
    else if (PATH.test(code) && !PLACEHOLDER.test(code) && (code.includes('/') || FILE.test(code)))
      paths.push(code)
  }
  for (const [, target = ''] of prose.matchAll(/\]\(([^)\s]+)[^)]*\)/g)) {
    if (!/^(?:[a-z]+:|#)/.test(target)) links.push(target.replace(/#.*$/, ''))
  }
  return { links, paths, commands }
}

/** Joins lines that end in a backslash; leaves out comments and anything that is not ours. */
function shellLines(body: string): string[] {
  return body
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) =>
      line
        .trim()
        .replace(/^\$ /, '')
        .replace(/\s+#.*$/, ''),
    )
    .flatMap((line) => line.split(/\s*(?:&&|\|\||;|\|)\s+/))
    .map((line) => line.replace(/^(?:[A-Z_]+=\S+ )+/, ''))
    .filter((line) => COMMAND.test(line))
}
