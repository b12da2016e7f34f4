import { randomUUID } from 'node:crypto'
import { TuttiError } from '@tutti/core'
import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { printRecovery } from '../workspace/print-recovery.ts'
import { printSummary } from '../workspace/print-summary.ts'

interface RecoverFlags {
  readonly at?: string
  readonly verify?: boolean
  readonly idempotencyKey?: string
}

export function addAgentRecover(agent: Command, cli: Cli): void {
  agent
    .command('recover <id>')
    .description('give an agent a new sandbox with its workspace, whatever state the present one is in')
    .option(
      '--verify',
      'make no sandbox: read and hash everything, and compare it with what the log recorded',
    )
    .option(
      '--at <offset>',
      'with the files as of this offset (offset_key of a line of `tutti agent events -o jsonl`)',
    )
    .option('--idempotency-key <key>', 'the same key makes only one sandbox')
    .addHelpText(
      'after',
      examples(
        'tutti agent recover bc-0191f3',
        'tutti agent recover bc-0191f3 --at OFFSET',
        'tutti agent recover bc-0191f3 --verify',
        'tutti agent recover bc-0191f3 --verify --at OFFSET -o json',
      ),
    )
    .action(
      cli.action<[string], RecoverFlags>(async (context, id, { at, verify, idempotencyKey }) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const position = at !== undefined && { atOffsetKey: at }
        if (verify !== true) {
          const request = { bcId, idempotencyKey: idempotencyKey ?? randomUUID(), ...position }
          const answer = await client.agents.recoverAgent(request, { signal })
          return printRecovery(output, answer)
        }
        const request = { bcId, verifyOnly: true, ...position }
        for await (const { part } of client.agents.readWorkspace(request, { signal }))
          if (part.case === 'summary') return printSummary(output, part.value)
        throw new TuttiError('unavailable', 'The server ended before it had read everything; try again.')
      }),
    )
}
