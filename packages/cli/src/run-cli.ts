import { CommanderError, type Command } from 'commander'
import { TuttiError } from '@tutti/core'
import pc from 'picocolors'
import type { CliDeps } from './deps.ts'
import { describeError, exitCodeOf } from './report-error.ts'
import { safeLine } from './output/terminal-text.ts'
import { programName } from './program-name.ts'
import { buildProgram } from './program.ts'

/** Runs one command line (without `node` and the script) and sets the exit code. Never throws. */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<void> {
  const program = buildProgram(deps)
  try {
    checkHelpTopic(program, argv)
    await program.parseAsync(argv, { from: 'user' })
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      // Help and version end this way too; commander has printed what there is to say, but not where to read on after an error.
      if (thrown.exitCode !== 0 && thrown.code !== 'commander.help')
        deps.stderr.write(
          `next: ${programName(deps.env)} ${commandPath(program, argv)} --help\n`.replace('  ', ' '),
        )
      deps.setExitCode(
        thrown.exitCode === 0 ? 0 : exitCodeOf(new TuttiError('invalid_argument', thrown.message)),
      )
      return
    }
    const error = TuttiError.from(thrown)
    const colors = deps.stderr.isTTY && !argv.includes('--no-color') && (deps.env['NO_COLOR'] ?? '') === ''
    deps.stderr.write(
      `${withId(describeError(error, commandPath(program, argv), programName(deps.env), pc.createColors(colors)), argv)}\n`,
    )
    if (error.code === 'internal' && deps.env['TUTTI_DEBUG']) deps.stderr.write(`${causes(thrown)}\n`)
    deps.setExitCode(exitCodeOf(error))
  }
}

/** commander answers `help` about a command that does not exist with the help of its parent. */
function checkHelpTopic(program: Command, argv: readonly string[]): void {
  const at = argv.indexOf('help')
  const topic = at < 0 ? undefined : argv[at + 1]
  if (topic === undefined || topic.startsWith('-')) return
  const parent = commandPath(program, argv.slice(0, at))
    .split(' ')
    .reduce((command, name) => command.commands.find((child) => child.name() === name) ?? command, program)
  // Only a group has a help command; else the word is an argument, such as a prompt.
  if (parent.commands.length === 0 || parent.commands.some((child) => child.name() === topic)) return
  parent.error(`error: unknown command '${topic}'`, { code: 'commander.unknownCommand' })
}

/** `agent get` for `--data-dir x agent get ID`. */
export function commandPath(program: Command, argv: readonly string[]): string {
  const path: string[] = []
  let command = program
  for (const word of argv) {
    const next = command.commands.find((candidate) => candidate.name() === word)
    if (!next) continue
    path.push(word)
    command = next
  }
  return path.join(' ')
}

/** Puts the id that was given behind a hint that needs one. */
const withId = (text: string, argv: readonly string[]): string =>
  /tutti agent (get|recover)$/.test(text)
    ? `${text} ${safeLine(argv.find((word) => word.startsWith('bc-')) ?? 'ID')}`
    : text

function causes(thrown: unknown): string {
  const parts: string[] = []
  for (let error = thrown; error instanceof Error; error = error.cause)
    parts.push(error.stack ?? error.message)
  return parts.join('\ncaused by: ')
}
