import type { Command } from 'commander'
import { PullRequestSchema } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { pullRequestStateName } from '../output/enum-name.ts'
import { printList } from '../output/print-list.ts'
import { table } from '../output/table.ts'
import { safeLine } from '../output/terminal-text.ts'
import { addPaging, readPages, type PagingFlags } from './paging.ts'

interface ListFlags extends PagingFlags {
  readonly repo?: string
}

export function addPrList(pr: Command, cli: Cli): void {
  addPaging(pr.command('list').description('list pull requests, newest first'))
    .option('--repo <name-or-url>', 'only of this repository, by its registered name or URL')
    .addHelpText('after', examples('tutti pr list', 'tutti pr list --repo app -o json'))
    .action(
      cli.action<[], ListFlags>(async (context, flags) => {
        const { output, signal } = context
        const client = await context.connect()
        const found = await readPages(flags, async (page) => {
          const request = { ...page, repository: flags.repo ?? '' }
          const { pullRequests, nextPageToken } = await client.pullRequests.listPullRequests(request, {
            signal,
          })
          return { items: pullRequests, nextPageToken }
        })
        const render = () =>
          table([
            ['NUMBER', 'REPOSITORY', 'STATE', 'BRANCH', 'TITLE'],
            ...found.items.map((item) => [
              `#${item.number}`,
              safeLine(item.repository),
              `${pullRequestStateName(item.state)}${item.draft ? ' draft' : ''}`,
              safeLine(item.branch),
              safeLine(item.title),
            ]),
          ])
        printList(output, PullRequestSchema, found, render, 'There are no pull requests.')
      }),
    )
}
