import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import type { CliContext } from '../context.ts'
import { demoSpec } from '../demo/demo-spec.ts'
import { makeDemoRepository } from '../demo/make-repository.ts'
import { removeOldRepositories } from '../demo/remove-old-repositories.ts'
import { examples } from '../examples.ts'
import { programName } from '../program-name.ts'
import { runEnsemble, temporalUi } from '../run/run-ensemble.ts'
import { makePrivate } from '../stack/data-folder.ts'

/** `tutti demo`: an ensemble of three bundled agents on a repository that it makes. */
export function addDemo(program: Command, cli: Cli): void {
  program
    .command('demo')
    .description('watch three small agents repair a repository that this command makes; no account, no key')
    .addHelpText('after', examples('tutti demo', 'tutti demo --data-dir /tmp/tutti-demo'))
    .action(
      cli.action<[], { readonly dataDir?: string; readonly address?: string }>(
        (context, { dataDir }) => demo(context, dataDir ?? demoFolder(context)),
        { signals: false },
      ),
    )
}

/** Below the user's cache folder: a demo leaves nothing in places that are kept. */
function demoFolder({ deps: { env } }: CliContext): string {
  const cache = env['XDG_CACHE_HOME']
  return join(cache && isAbsolute(cache) ? cache : join(env['HOME'] || homedir(), '.cache'), 'tutti', 'demo')
}

async function demo(context: CliContext, folder: string): Promise<number> {
  const { output, deps } = context
  const config = context.config({
    'data.dir': { value: folder, flag: '--data-dir' },
    'server.address': { value: '', flag: 'demo' },
    // All three at once, whatever the machine: they mostly wait.
    'sandboxes.max': { value: '3', flag: 'demo' },
    'log.level': { value: 'error', flag: 'demo' },
  })
  const dataDir = String(config.values['data.dir'])
  makePrivate(dataDir)
  const [{ describeLocalSandbox }, { createMirrors }] = await Promise.all([
    import('@tutti/sandbox'),
    import('@tutti/git'),
  ])
  const { bubblewrap } = await describeLocalSandbox({ root: join(dataDir, 'sandboxes') })
  if (!bubblewrap.works) {
    output.say(
      `${bubblewrap.problem}: the demo's own three agents run without isolation. Other agents would be refused.`,
    )
    output.say(`To mend it: ${bubblewrap.remedy}`)
  }
  const repositories = join(dataDir, 'repositories')
  const repository = join(repositories, `little-shop-${randomUUID().slice(0, 8)}`)
  mkdirSync(repository, { recursive: true, mode: 0o700 })
  await makeDemoRepository(repository, context.signal)
  await removeOldRepositories(repositories, createMirrors({ root: join(dataDir, 'mirrors') }), context.signal)
  output.say(`Made a repository with failing tests: ${repository}`)
  return runEnsemble(context, {
    asked: { spec: demoSpec(bubblewrap.works), repository, ref: '' },
    config,
    flagsForServer: [],
    idempotencyKey: randomUUID(),
    alsoNext(ensemble, session) {
      const ui = session.stack()?.temporal.uiAddress
      return [
        ...(ui === undefined ? [] : [`${temporalUi(ui, ensemble.ensembleId)}  (Temporal UI)`]),
        '',
        `${programName(deps.env)} run "fix the failing tests" --repo PATH --check "npm test" --agent 'command:claude -p {prompt}'`,
        '    the same on your own repository with a real agent; README.md says what it needs',
      ]
    },
  })
}
