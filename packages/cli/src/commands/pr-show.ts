import type { Command } from 'commander'
import { TuttiError } from '@tutti/core'
import { PullRequestSchema, type PullRequest } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { examples } from '../examples.ts'
import { pullRequestStateName } from '../output/enum-name.ts'
import { messageJson } from '../output/message-json.ts'
import type { Output } from '../output/output.ts'
import { collectPatch, patchJson, renderPatch, wholePatch } from '../output/patch.ts'
import { safeLine, safeText } from '../output/terminal-text.ts'

interface ShowFlags {
  readonly repo?: string
  readonly raw?: boolean
}

export function addPrShow(pr: Command, cli: Cli): void {
  pr.command('show <number-or-url>')
    .description('a pull request with its diff')
    .option('--repo <name-or-url>', 'its repository, where several have that number')
    .option('--raw', 'only the exact patch, for git apply')
    .addHelpText('after', examples('tutti pr show 1', 'tutti pr show 1 --raw | git apply'))
    .action(
      cli.action<[string], ShowFlags>(async (context, given, flags) => {
        const { output, signal } = context
        const number = /^#?(\d{1,15})$/.exec(given)?.[1]
        if (number === undefined && !given.includes(':') && !given.includes('/')) {
          throw new TuttiError(
            'invalid_argument',
            `${JSON.stringify(given)} is neither a number nor a URL of a pull request.`,
            {
              field: 'number-or-url',
            },
          )
        }
        const key = {
          ...(number === undefined ? { url: given } : { number: BigInt(number) }),
          repository: flags.repo ?? '',
        }
        const client = await context.connect()
        const { pullRequest } = await client.pullRequests.getPullRequest({ key }, { signal })
        const patch = await collectPatch(client.pullRequests.diffPullRequest({ key }, { signal }))
        if (flags.raw === true) return output.stdout.write(wholePatch(patch))
        if (output.format !== 'text') {
          const object = messageJson(PullRequestSchema, pullRequest!) as object
          return output.json({ ...object, ...patchJson(wholePatch(patch)) })
        }
        printHead(output, pullRequest!)
        for (const line of renderPatch(patch, output.paint).lines) output.line(line)
      }),
    )
}

function printHead(output: Output, pullRequest: PullRequest): void {
  const { paint } = output
  const draft = pullRequest.draft ? ', draft' : ''
  output.line(paint.bold(`#${pullRequest.number}  ${safeLine(pullRequest.title)}`))
  output.line(
    `${pullRequestStateName(pullRequest.state)}${draft}  ${safeLine(pullRequest.branch)} → ${safeLine(pullRequest.base)}`,
  )
  output.line(`${safeLine(pullRequest.repository)}  ${safeLine(pullRequest.url)}`)
  const source = pullRequest.ensembleId === '' ? pullRequest.bcId : pullRequest.ensembleId
  if (source !== '') output.line(`from ${safeLine(source)}`)
  if (pullRequest.body !== '') output.line(`\n${safeText(pullRequest.body.trimEnd(), { colors: false })}`)
  output.line()
}
