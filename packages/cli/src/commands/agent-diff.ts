import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { collectPatch } from '../output/patch.ts'
import { printPatch } from '../output/print-patch.ts'
import { resolveAgentId } from '../resolve-id.ts'

export function addAgentDiff(agent: Command, cli: Cli): void {
  agent
    .command('diff <id>')
    .description('what an agent changed, up to its newest checkpoint')
    .addHelpText(
      'after',
      examples('tutti agent diff bc-0191f3', 'tutti agent diff bc-0191f3 --raw | git apply'),
    )
    .option('--raw', "the exact patch, which may contain a terminal's control characters")
    .action(
      cli.action<[string], { readonly raw?: boolean }>(async (context, id, { raw = false }) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const patch = await collectPatch(client.agents.diffAgent({ bcId }, { signal }))
        printPatch(output, patch, raw)
      }),
    )
}
