import type { Command } from 'commander'
import { followAgentEvents } from '@tutti/client'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { printEvents } from '../output/print-events.ts'
import { resolveAgentId } from '../resolve-id.ts'

interface EventsFlags {
  readonly follow?: boolean
  readonly from?: string
}

export function addAgentEvents(agent: Command, cli: Cli): void {
  agent
    .command('events <id>')
    .description("an agent's run log: every event once, in order")
    .option('--follow', 'stay until no turn is left to run; a broken connection is taken up where it broke')
    .option('--from <offset>', 'go on after this offset (offset_key of an earlier line)')
    .addHelpText(
      'after',
      examples(
        'tutti agent events bc-0191f3 --follow',
        'tutti agent events bc-0191f3 --follow --from OFFSET -o jsonl >> log.jsonl',
      ),
    )
    .action(
      cli.action<[string], EventsFlags>(async (context, id, { follow = false, from }) => {
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, context.signal)
        const events = followAgentEvents(
          async () => (await context.tryConnect()) ?? client,
          { bcId, from, follow, signal: context.signal },
          { onBroken: () => context.output.say('Lost the connection to the server; trying again.') },
        )
        await printEvents(context.output, events, follow)
      }),
    )
}
