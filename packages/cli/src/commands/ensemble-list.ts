import type { Command } from 'commander'
import { EnsembleSchema } from '@tutti/proto'
import { phaseFromWire } from '@tutti/protocol/wire'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { ago, timestampMs } from '../output/agent-lines.ts'
import { printList } from '../output/print-list.ts'
import { table } from '../output/table.ts'
import { safeLine } from '../output/terminal-text.ts'
import { addPaging, readPages, type PagingFlags } from './paging.ts'

interface ListFlags extends PagingFlags {
  readonly running?: boolean
}

export function addEnsembleList(ensemble: Command, cli: Cli): void {
  addPaging(ensemble.command('list').description('list ensembles, newest first'))
    .option('--running', 'only those that have not ended')
    .addHelpText('after', examples('tutti ensemble list', 'tutti ensemble list --running -o jsonl'))
    .action(
      cli.action<[], ListFlags>(async (context, flags) => {
        const { output, signal, deps } = context
        const client = await context.connect()
        const found = await readPages(flags, async (page) => {
          const request = { ...page, runningOnly: flags.running === true }
          const { ensembles, nextPageToken } = await client.ensembles.listEnsembles(request, { signal })
          return { items: ensembles, nextPageToken }
        })
        const now = deps.clock.now()
        const render = () =>
          table([
            ['ID', 'PHASE', 'REASON', 'CREATED', 'TITLE'],
            ...found.items.map((item) => [
              safeLine(item.ensembleId),
              phaseFromWire(item.phase),
              safeLine(item.reason),
              ago(timestampMs(item.createdAt), now),
              safeLine(item.title),
            ]),
          ])
        printList(output, EnsembleSchema, found, render, 'There are no ensembles.')
      }),
    )
}
