import { TuttiError } from '@tutti/core'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import type { CliContext } from '../context.ts'
import { examples } from '../examples.ts'
import { isTextOutput } from '../output/output.ts'
import { rebuiltLine } from '../output/rebuilt-line.ts'
import { openDataFolder } from '../stack/data-folder.ts'
import { createLocks, isRefused } from '../stack/locks.ts'

/** `tutti admin rebuild`: the way back when the database is gone and the blobs and the archive are not. */
export function addAdminRebuild(admin: Command, cli: Cli): void {
  admin
    .command('rebuild')
    .description(
      'make agents and ensembles that the database does not have again from the archive; no server may run',
    )
    .addHelpText(
      'after',
      examples('tutti admin rebuild --data-dir /srv/tutti', 'tutti admin rebuild -o json'),
    )
    .action(cli.action<[], object>(rebuild))
}

async function rebuild(context: CliContext): Promise<number> {
  const { output, signal, deps } = context
  const config = context.config()
  const { path } = openDataFolder(String(config.values['data.dir']))
  const lock = createLocks(path).acquire('dev')
  if (isRefused(lock)) {
    const { role, pid } = lock.holder
    throw new TuttiError(
      'failed_precondition',
      `Process ${pid} (${role}) works with the data folder ${path}. End it, then rebuild.`,
      { pid, next: `kill ${pid}, then the same command again` },
    )
  }
  try {
    const parts = await deps.loadParts()
    const stores = await parts.openStores(path, config.values)
    try {
      const logs = []
      for await (const log of parts.rebuild(stores, signal)) {
        logs.push(log)
        if (isTextOutput(output)) output.line(rebuiltLine(log))
      }
      if (!isTextOutput(output)) output.json({ logs })
      else if (logs.length === 0) output.line('there is no log in the archive')
      return logs.some(({ problem }) => problem) ? 1 : 0
    } finally {
      await stores.close()
    }
  } finally {
    lock.release()
  }
}
