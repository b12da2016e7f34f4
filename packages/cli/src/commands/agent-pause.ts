import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printAgentState } from './print-agent-state.ts'

export function addAgentPause(agent: Command, cli: Cli): void {
  agent
    .command('pause <id>')
    .description('stop at the next safe point; the turn goes on at resume')
    .addHelpText('after', examples('tutti agent pause bc-0191f3'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.composers.pauseBackgroundComposer({ bcId }, { signal })
        printAgentState(output, bcId, answer.workflowStatus, answer.tutti)
      }),
    )
}
