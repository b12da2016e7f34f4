import type { Command } from 'commander'
import { reasons, type Reason } from '@tutti/core'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { showEnsemble } from '../live/show-ensemble.ts'
import { resolveEnsembleId } from '../resolve-id.ts'

export function addEnsembleWatch(ensemble: Command, cli: Cli): void {
  ensemble
    .command('watch <id>')
    .description('follow an ensemble to its end; the exit code is that of its reason')
    .option('--from <offset>', 'go on after this offset (offset_key of an earlier line)')
    .addHelpText(
      'after',
      examples('tutti ensemble watch en-0191f3', 'tutti ensemble watch en-0191f3 -o jsonl'),
    )
    .action(
      cli.action<[string], { readonly from?: string }>(async (context, id, { from }) => {
        const client = await context.connect()
        const ensembleId = await resolveEnsembleId(client, id, context.signal)
        const last = await showEnsemble(context, {
          source: async () => (await context.tryConnect()) ?? client,
          ensembleId,
          from,
          signal: context.signal,
          to: 'stdout',
          jsonl: context.output.format !== 'text',
        })
        const reason = last?.reason ?? ''
        return Object.hasOwn(reasons, reason) ? reasons[reason as Reason].exit : 0
      }),
    )
}
