import { spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { reasons } from '@tutti/core'
import { pathBytes } from '@tutti/workspace'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { crashPointOf } from '../crash-point-of.ts'
import { examples } from '../examples.ts'
import { isTextOutput, type Output } from '../output/output.ts'
import { shownPath } from '../output/shown-path.ts'
import { safeLine } from '../output/terminal-text.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { runSync } from '../sync/run-sync.ts'
import type { SyncNote } from '../sync/sync-note.ts'
import { stateFolder } from '../sync/sync-state.ts'

interface SyncFlags {
  readonly once?: boolean
  readonly background?: boolean
  readonly ignoreCase?: boolean
  readonly allowDeletions?: boolean
}

export function addSync(program: Command, cli: Cli): void {
  program
    .command('sync <id> <dir>')
    .description("keep a folder and an agent's files in step: its work appears there, your edits win")
    .option(
      '--once',
      'end when both are in step, with exit code 9 if a part is not; without it, stay until Ctrl-C',
    )
    .option('--background', 'come into step, then stay on behind your back; the log is DIR/.tutti/sync.log')
    .option('--ignore-case', 'refuse names that differ in case only, as disks of macOS and Windows do')
    .option('--allow-deletions', 'delete in the workspace too when more than half of the files are gone')
    .addHelpText(
      'after',
      examples(
        'tutti sync bc-0191f3 ./app',
        'tutti sync bc-0191f3 . --once',
        'tutti sync bc-0191f3 . --background',
      ),
    )
    .action(
      cli.action<[string, string], SyncFlags>(async (context, id, dir, flags) => {
        const { deps, output, signal } = context
        const { background = false, once = false, ignoreCase, allowDeletions = false } = flags
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const folder = resolve(deps.cwd, dir)
        const apart = await runSync({
          client: async () => (await context.tryConnect()) ?? client,
          bcId,
          folder,
          once: once || background,
          ignoresCase: ignoreCase,
          allowDeletions,
          crashPoint: await crashPointOf(deps.env, join(folder, stateFolder)),
          note: (note) => tell(output, note),
          say: (text) => output.say(safeLine(text)),
          signal,
        })
        if (background) return stayBehind(output, folder)
        if (!once) return 0
        if (apart === 0) {
          output.say('In step.')
          return 0
        }
        output.say(`Not in step: ${apart === 1 ? '1 path' : `${apart} paths`}; "!" says why, and what to do.`)
        return reasons.delivery_failed.exit
      }),
    )
}

const arrows: Readonly<Record<SyncNote['kind'], string>> = {
  received: '←',
  removed: '←  deleted',
  sent: '→',
  kept: '→  yours is kept:',
  left: '!',
}

function tell(output: Output, { kind, key, detail }: SyncNote): void {
  const path = pathBytes(key)
  if (isTextOutput(output)) {
    const why = detail === undefined ? '' : `: ${safeLine(detail)}`
    output.line(`${arrows[kind]} ${shownPath(path)}${why}`)
  } else output.jsonLine({ kind, path: path.toString(), ...(detail !== undefined && { detail }) })
}

/** The same again without the flag, in a process of its own that nothing of this one's end reaches. */
function stayBehind(output: Output, folder: string): void {
  const log = openSync(join(folder, stateFolder, 'sync.log'), 'a', 0o600)
  const args = [...process.execArgv, ...process.argv.slice(1).filter((arg) => arg !== '--background')]
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] })
  child.unref()
  output.say(
    `In step. Process ${child.pid} stays on; "kill ${child.pid}" ends it, and nothing is lost by that.`,
  )
}
