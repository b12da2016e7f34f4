/** What of commander's Command this check uses. */
export type CommandTree = {
  name(): string
  aliases(): string[]
  commands: readonly CommandTree[]
  options: readonly { long?: string | undefined; short?: string | undefined }[]
  registeredArguments: readonly unknown[]
}

/**
 * Says what is wrong with a `tutti …` line as a document shows it, or nothing. Follows `a|b` to both, stops judging
 * words at the first argument, and checks every option against the command and its parents.
 */
export function findCommandFault(program: CommandTree, line: string): string | undefined {
  const words = line.replace(/^(?:npx )?tutti ?/, '').match(/'[^']*'|"[^"]*"|\[|\]|[^\s[\]]+/g) ?? []
  let current: readonly CommandTree[] = [program]
  const above: CommandTree[] = [program]
  let inArguments = false
  for (const word of words) {
    if (word === '[' || word === ']') continue
    if (word.startsWith('-')) {
      const name = word.replace(/=.*$/, '')
      if (!hasOption([...above, ...current], name)) return `${nameOf(current)} has no option ${name}`
      inArguments = true
      continue
    }
    if (inArguments) continue
    const wanted = /^[a-z-]+(?:\|[a-z-]+)*$/.test(word) ? word.split('|') : []
    const next = wanted.map((name) =>
      current.flatMap(({ commands }) => commands).find((command) => answersTo(command, name)),
    )
    if (wanted.length > 0 && next.every((command) => command !== undefined)) {
      above.push(...current)
      current = next
    } else if (current.some(({ registeredArguments }) => registeredArguments.length > 0)) {
      inArguments = true
    } else {
      return `${nameOf(current)} has no command ${word}`
    }
  }
  return undefined
}

function answersTo(command: CommandTree, name: string): boolean {
  return command.name() === name || command.aliases().includes(name)
}

function hasOption(commands: readonly CommandTree[], name: string): boolean {
  if (['-h', '--help', '--version'].includes(name)) return true
  return commands.some(({ options }) => options.some(({ long, short }) => long === name || short === name))
}

function nameOf(commands: readonly CommandTree[]): string {
  return commands.map((command) => command.name()).join('|')
}
