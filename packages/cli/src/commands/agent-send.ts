import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { TuttiError } from '@tutti/core'
import { BackgroundComposerSource, FollowupMode } from '@tutti/proto'
import { workflowStatusFromWire } from '@tutti/protocol/wire'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { isTextOutput } from '../output/output.ts'
import { resolveAgentId } from '../resolve-id.ts'

interface SendFlags {
  readonly interrupt?: boolean
  readonly idempotencyKey?: string
}

export function addAgentSend(agent: Command, cli: Cli): void {
  agent
    .command('send <id> <message>')
    .description('send a message: it waits its turn, or interrupts the running one')
    .option('--interrupt', 'end the running turn and come next')
    .option('--idempotency-key <key>', 'the same key sends the message only once')
    .addHelpText(
      'after',
      examples(
        'tutti agent send bc-0191f3 "now add a test"',
        'tutti agent send bc-0191f3 --interrupt "stop: wrong file"',
      ),
    )
    .action(
      cli.action<[string, string], SendFlags>(async (context, id, message, flags) => {
        const { output, signal, deps } = context
        const followup = message === '-' ? await deps.readStdin() : message
        if (followup.trim() === '') {
          throw new TuttiError(
            'invalid_argument',
            'The message is empty: say what the agent should do next.',
            {
              field: 'message',
            },
          )
        }
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.composers.addAsyncFollowupBackgroundComposer(
          {
            bcId,
            followup,
            followupSource: BackgroundComposerSource.CLI,
            tutti: {
              mode: flags.interrupt === true ? FollowupMode.INTERRUPT : FollowupMode.QUEUE,
              idempotencyKey: flags.idempotencyKey ?? randomUUID(),
            },
          },
          { signal },
        )
        const { position, turnId } = answer
        if (!isTextOutput(output)) {
          return output.json({
            bc_id: bcId,
            position,
            turn_id: turnId,
            workflow_status: workflowStatusFromWire(answer.workflowStatus),
          })
        }
        output.line(position === 0 ? 'accepted: it starts now' : `accepted: number ${position} in the queue`)
      }),
    )
}
