import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { isTextOutput } from '../output/output.ts'
import { safeLine } from '../output/terminal-text.ts'
import { resolveAgentId } from '../resolve-id.ts'

export function addAgentAnswer(agent: Command, cli: Cli): void {
  agent
    .command('answer <id> <text>')
    .description('answer the question that an agent waits for')
    .option('--question <question-id>', 'which one (default: the one that is open)')
    .addHelpText('after', examples('tutti agent answer bc-0191f3 "use PostgreSQL"'))
    .action(
      cli.action<[string, string], { readonly question?: string }>(async (context, id, answer, flags) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const request = { bcId, answer, questionId: flags.question ?? '' }
        const { questionId } = await client.agents.answerQuestion(request, { signal })
        if (!isTextOutput(output)) return output.json({ bc_id: bcId, question_id: questionId })
        output.line(`answered ${safeLine(questionId)}`)
      }),
    )
}
