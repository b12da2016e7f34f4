import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printAgentState } from './print-agent-state.ts'

export function addAgentArchive(agent: Command, cli: Cli): void {
  agent
    .command('archive <id>')
    .description('stop, checkpoint and close an agent until it is resumed')
    .addHelpText('after', examples('tutti agent archive bc-0191f3'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.composers.archiveBackgroundComposer({ bcId }, { signal })
        printAgentState(output, bcId, answer.workflowStatus, answer.tutti)
      }),
    )
}
