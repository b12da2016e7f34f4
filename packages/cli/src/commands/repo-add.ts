import { resolve } from 'node:path'
import type { Command } from 'commander'
import { RepositorySchema } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput } from '../output/output.ts'
import { shownPath } from '../output/shown-path.ts'
import { safeLine } from '../output/terminal-text.ts'

export function addRepoAdd(repo: Command, cli: Cli): void {
  repo
    .command('add <path>')
    .description(
      'register a repository on this machine; the same path gives the same name (run does this by itself)',
    )
    .option('--name <name>', 'what to call it (default: the last part of the path)')
    .addHelpText('after', examples('tutti repo add .', 'tutti repo add ~/src/app --name app'))
    .action(
      cli.action<[string], { readonly name?: string }>(async (context, path, flags) => {
        const { output, signal, deps } = context
        const client = await context.connect()
        const request = { path: resolve(deps.cwd, path), name: flags.name ?? '' }
        const { repository } = await client.repositories.addRepository(request, { signal })
        if (!isTextOutput(output)) return output.json(messageJson(RepositorySchema, repository!))
        output.line(`${safeLine(repository!.name)}  ${shownPath(repository!.path)}`)
      }),
    )
}
