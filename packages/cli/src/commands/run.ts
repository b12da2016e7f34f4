import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { TuttiError } from '@tutti/core'
import type { Cli } from '../cli.ts'
import type { CliContext } from '../context.ts'
import { examples } from '../examples.ts'
import { runEnsemble } from '../run/run-ensemble.ts'
import { nameFile } from '../spec/name-file.ts'
import { addRunFlags, buildEnsembleSpec, type RunFlags } from '../spec/run-flags.ts'

interface RunOptions extends RunFlags {
  readonly maxSandboxes?: string
  readonly idempotencyKey?: string
}

/** `tutti run`: an ensemble from start to summary. */
export function addRun(program: Command, cli: Cli): void {
  const command = program
    .command('run [prompt]')
    .description('run an ensemble of agents on a repository, follow it, and show what came out')
  addRunFlags(command)
    .option('--max-sandboxes <number>', 'how many agents work at the same time (default: one per core)')
    .option('--idempotency-key <key>', 'the same key starts the ensemble only once')
    .addHelpText(
      'after',
      `
A prompt of "-" is read from standard input. Ctrl-C stops the ensemble with a checkpoint, a second Ctrl-C kills it.
Durations are written like 90s, 45m, 2h or 1h30m. Defaults are those of the settings: tutti config list has them.
An --agent may end with its own words for the prompt: --agent 'SPEC ++ WORDS'.
Exit codes: 0 done, 2 stopped, 3 failed, 7 budget or rate limit, 8 nothing to deliver, 9 not delivered, 64 wrong usage,
69 server not reachable, 130 killed.
${examples(
  `tutti run "make the tests pass" --repo . --agents 3 --check "npm test" --agent 'command:claude -p {prompt}'`,
  `tutti run "fix the typos" --repo ~/src/app --agent embedded:scripted --pr none -o json`,
  `tutti run "speed up the parser" --repo . --agent 'command:codex exec {prompt}' --agent 'command:claude -p {prompt} ++ Measure first.'`,
  'tutti run -f ensemble.yaml',
)}`,
    )
    .action(
      cli.action<[string | undefined], RunOptions>(
        async (context, given, options) => {
          const prompt = given === '-' ? await context.deps.readStdin() : given
          const asked = buildEnsembleSpec(prompt, options, context.deps.cwd)
          const flags =
            options.maxSandboxes === undefined
              ? {}
              : { 'sandboxes.max': { value: options.maxSandboxes, flag: '--max-sandboxes' } as const }
          await checkEnv(asked.spec.sandbox?.env ?? [], context)
          return runEnsemble(context, {
            asked,
            config: context.config(flags),
            flagsForServer: Object.keys(flags),
            idempotencyKey: options.idempotencyKey ?? randomUUID(),
          }).catch((error: unknown) => {
            throw nameFile(error, options.file, options)
          })
        },
        { signals: false },
      ),
    )
}

/** Where this command starts the worker, the worker has this environment; a server that is up has its own, and says what it lacks. */
async function checkEnv(names: readonly string[], context: CliContext): Promise<void> {
  const missing = names.find((name) => context.deps.env[name] === undefined)
  if (missing === undefined || (await context.tryConnect())) return
  throw new TuttiError(
    'invalid_argument',
    `--env ${missing}: the variable ${missing} is not set here. Set it, or give --env ${missing}=VALUE.`,
    { field: '--env', name: missing },
  )
}
