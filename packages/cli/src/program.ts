import { Command, Option } from 'commander'
import { createCli } from './cli.ts'
import { addAdmin } from './commands/admin.ts'
import { addAgent } from './commands/agent.ts'
import { addConfig } from './commands/config.ts'
import { addDemo } from './commands/demo.ts'
import { addDev } from './commands/dev.ts'
import { addDoctor } from './commands/doctor.ts'
import { addEnsemble } from './commands/ensemble.ts'
import { addGc } from './commands/gc.ts'
import { addPr } from './commands/pr.ts'
import { addRepo } from './commands/repo.ts'
import { addRun } from './commands/run.ts'
import { addServe } from './commands/serve.ts'
import { addSync } from './commands/sync.ts'
import type { CliDeps } from './deps.ts'
import { examples } from './examples.ts'
import { safeText } from './output/terminal-text.ts'
import { version } from './version.ts'

/**
 * The whole command tree. Nothing runs before `parseAsync`; usage errors are thrown as CommanderError, everything else that goes
 * wrong as TuttiError.
 */
export function buildProgram(deps: CliDeps): Command {
  const cli = createCli(deps)
  const program = new Command('tutti')
    .description('Ensembles of coding agents on Temporal: several agents on one task, one pull request.')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'how to use it, with examples')
    .option('--data-dir <folder>', 'where everything is kept (TUTTI_DATA_DIR)')
    .option('--address <url>', 'a server elsewhere; its key is in TUTTI_API_KEY (TUTTI_ADDRESS)')
    .addOption(
      new Option('-o, --output <format>', 'data on stdout as')
        .choices(['text', 'json', 'jsonl'])
        .default('text'),
    )
    .option('--no-color', 'no colours (NO_COLOR)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => deps.stdout.write(text),
      // Only help goes this way, which is what a command without its subcommand prints.
      writeErr: (text) => deps.stdout.write(text),
      // It repeats what was given, which may come out of a script or a pasted line.
      outputError: (text) =>
        deps.stderr.write(safeText(text.replace(/^error: /, 'error[invalid_argument]: '), { colors: false })),
      getOutHelpWidth: () => Math.min(100, deps.stdout.columns),
      getErrHelpWidth: () => Math.min(100, deps.stdout.columns),
      getOutHasColors: () => deps.stdout.isTTY,
      getErrHasColors: () => deps.stdout.isTTY,
    })
    .exitOverride()
    .showSuggestionAfterError()
    .addHelpText(
      'after',
      examples(
        'tutti demo',
        `tutti run "make the tests pass" --repo . --agents 3 --check "npm test" --agent 'command:claude -p {prompt}'`,
        'tutti dev',
        'tutti doctor',
      ),
    )
  addRun(program, cli)
  addDemo(program, cli)
  addDev(program, cli)
  addServe(program, cli)
  addAgent(program, cli)
  addSync(program, cli)
  addEnsemble(program, cli)
  addPr(program, cli)
  addRepo(program, cli)
  addConfig(program, cli)
  addDoctor(program, cli)
  addGc(program, cli)
  addAdmin(program, cli)
  return program
}
