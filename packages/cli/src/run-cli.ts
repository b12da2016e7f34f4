import { CommanderError, type Command } from 'commander'
import { TuttiError } from '@tutti/core'
import pc from 'picocolors'
import type { CliDeps } from './deps.ts'
import { describeError, exitCodeOf } from './report-error.ts'
import { buildProgram } from './program.ts'

/** Runs one command line (without `node` and the script) and sets the exit code. Never throws. */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<void> {
  const program = buildProgram(deps)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (thrown) {
    if (thrown instanceof CommanderError) {
      // Help and version end this way too; commander has printed what there is to say, but not where to read on.
      if (thrown.exitCode !== 0)
        deps.stderr.write(`next: tutti ${commandPath(program, argv)} --help\n`.replace('  ', ' '))
      deps.setExitCode(
        thrown.exitCode === 0 ? 0 : exitCodeOf(new TuttiError('invalid_argument', thrown.message)),
      )
      return
    }
    const error = TuttiError.from(thrown)
    const colors = deps.stderr.isTTY && !argv.includes('--no-color') && (deps.env['NO_COLOR'] ?? '') === ''
    deps.stderr.write(`${describeError(error, commandPath(program, argv), pc.createColors(colors))}\n`)
    if (error.code === 'internal' && deps.env['TUTTI_DEBUG']) deps.stderr.write(`${causes(thrown)}\n`)
    deps.setExitCode(exitCodeOf(error))
  }
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

function causes(thrown: unknown): string {
  const parts: string[] = []
  for (let error = thrown; error instanceof Error; error = error.cause)
    parts.push(error.stack ?? error.message)
  return parts.join('\ncaused by: ')
}
