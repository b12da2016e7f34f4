import type { Command } from 'commander'
import { RepositorySchema } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { printList } from '../output/print-list.ts'
import { table } from '../output/table.ts'
import { shownPath } from '../output/shown-path.ts'
import { safeLine } from '../output/terminal-text.ts'
import { addPaging, readPages, type PagingFlags } from './paging.ts'

export function addRepoList(repo: Command, cli: Cli): void {
  addPaging(repo.command('list').description('list the registered repositories'))
    .addHelpText('after', examples('tutti repo list', 'tutti repo list -o json'))
    .action(
      cli.action<[], PagingFlags>(async (context, flags) => {
        const { output, signal } = context
        const client = await context.connect()
        const found = await readPages(flags, async (page) => {
          const { repositories, nextPageToken } = await client.repositories.listRepositories(page, { signal })
          return { items: repositories, nextPageToken }
        })
        const render = () =>
          table([
            ['NAME', 'BRANCH', 'PATH'],
            ...found.items.map((item) => [
              safeLine(item.name),
              safeLine(item.defaultBranch),
              shownPath(item.path),
            ]),
          ])
        printList(
          output,
          RepositorySchema,
          found,
          render,
          'There are no repositories; "tutti repo add PATH" registers one.',
        )
      }),
    )
}
