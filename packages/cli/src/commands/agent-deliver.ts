import type { Command } from 'commander'
import { DeliverAgentResponseSchema, PullRequestMode } from '@tutti/proto'
import { reasons, type Reason } from '@tutti/core'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput } from '../output/output.ts'
import { safeLine } from '../output/terminal-text.ts'
import { resolveAgentId } from '../resolve-id.ts'
import { pullRequestModes, type PullRequestModeName } from '../spec/pull-request-modes.ts'

interface DeliverFlags {
  readonly branch?: string
  readonly title?: string
  readonly base?: string
  readonly body?: string
  readonly pr?: PullRequestModeName
}

export function addAgentDeliver(agent: Command, cli: Cli): void {
  const command = agent.command('deliver <id>')
  command
    .description("push an agent's newest checkpoint and open, or update, its pull request")
    .option('--branch <name>', 'the branch to push (default: named after the agent)')
    .option('--title <text>', 'the title of the pull request')
    .option('--base <branch>', 'the branch that it is against (default: the one the agent started from)')
    .option('--body <text>', 'the text of the pull request (default: the agent’s summary)')
    .addOption(command.createOption('--pr <mode>', 'the pull request').choices(Object.keys(pullRequestModes)))
    .addHelpText(
      'after',
      examples(
        'tutti agent deliver bc-0191f3',
        'tutti agent deliver bc-0191f3 --branch docs/api --title "Document the API"',
      ),
    )
    .action(
      cli.action<[string], DeliverFlags>(async (context, id, flags) => {
        const { output, signal } = context
        const client = await context.connect()
        const bcId = await resolveAgentId(client, id, signal)
        const answer = await client.agents.deliverAgent(
          {
            bcId,
            branch: flags.branch ?? '',
            title: flags.title ?? '',
            base: flags.base ?? '',
            body: flags.body ?? '',
            mode: flags.pr === undefined ? PullRequestMode.UNSPECIFIED : pullRequestModes[flags.pr],
          },
          { signal },
        )
        if (!isTextOutput(output)) output.json(messageJson(DeliverAgentResponseSchema, answer))
        else if (answer.pullRequest) {
          output.line(
            `#${answer.pullRequest.number}  ${safeLine(answer.branch)}  ${safeLine(answer.pullRequest.url)}`,
          )
        } else if (answer.branch !== '') output.line(`pushed ${safeLine(answer.branch)}`)
        else output.say('There is nothing to deliver: the agent changed nothing.')
        return Object.hasOwn(reasons, answer.reason) ? reasons[answer.reason as Reason].exit : 0
      }),
    )
}
