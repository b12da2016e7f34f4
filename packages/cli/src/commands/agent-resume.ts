import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printAgentState } from './print-agent-state.ts'

export function addAgentResume(agent: Command, cli: Cli): void {
  agent
    .command('resume <id>')
    .description('go on after a pause, an error or an archive')
    .addHelpText('after', examples('tutti agent resume bc-0191f3'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.composers.resumeBackgroundComposer({ bcId }, { signal })
        printAgentState(output, bcId, answer.workflowStatus, answer.tutti)
      }),
    )
}
