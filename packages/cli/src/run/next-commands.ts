import type { TuttiClient } from '@tutti/client'
import type { Ensemble } from '@tutti/proto'
import type { CommandLine } from '../command-line.ts'
import { quoteWord } from '../output/quote-word.ts'

/** What starts the server that a command needs, when it ends with the command that prints this. */
export const startServer = (command: CommandLine): string[] => [
  command('dev'),
  '    starts the server again, as it ends with this command; then, in another terminal:',
]

/** How to look at the pull request of an ensemble; names the repository where the number alone is not enough. */
export async function showPullRequest(
  client: TuttiClient,
  { pullRequest }: Ensemble,
  command: CommandLine,
): Promise<string[]> {
  if (!pullRequest) return []
  const { number, repository } = pullRequest
  // Refused where several repositories have that number.
  const isOnly = await client.pullRequests.getPullRequest({ key: { number } }).then(
    () => true,
    () => false,
  )
  return [command(`pr show ${number}${isOnly ? '' : ` --repo ${quoteWord(repository)}`}`)]
}

/** The log of the first agent that did not do well, and the changes of the first that made some. */
export function lookAtAgents({ attempts }: Ensemble, command: CommandLine): string[] {
  const failed = attempts.find(
    ({ reason, check }) =>
      !['', 'completed', 'nothing_to_deliver'].includes(reason) || (check && check.exitCode !== 0),
  )
  const changed = attempts.find(({ filesChanged }) => filesChanged > 0)
  const log = failed ?? attempts[0]
  return [
    ...(log ? [command(`agent events ${log.bcId}`)] : []),
    ...(changed ? [command(`agent diff ${changed.bcId}`)] : []),
  ]
}
