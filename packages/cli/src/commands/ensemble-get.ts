import type { Command } from 'commander'
import { followEnsemble, type TuttiClient } from '@tutti/client'
import type { Ensemble, Synthesis } from '@tutti/proto'
import type { Cli } from '../cli.ts'
import { createCommandLine } from '../command-line.ts'
import { examples } from '../examples.ts'
import { ensembleResult } from '../live/ensemble-result.ts'
import { renderSummary } from '../live/summary.ts'
import { isTextOutput, textWidth } from '../output/output.ts'
import { lookAtAgents, showPullRequest } from '../run/next-commands.ts'
import { resolveEnsembleId } from '../resolve-id.ts'

export function addEnsembleGet(ensemble: Command, cli: Cli): void {
  ensemble
    .command('get <id>')
    .description('what came out of an ensemble, as far as it has come; the same object as of run -o json')
    .addHelpText('after', examples('tutti ensemble get en-0191f3', 'tutti ensemble get en-0191f3 -o json'))
    .action(
      cli.action<[string], object>(async (context, id) => {
        const { output, signal } = context
        const client = await context.connect()
        const ensembleId = await resolveEnsembleId(client, id, signal)
        const { ensemble: found } = await client.ensembles.getEnsemble({ ensembleId }, { signal })
        if (!isTextOutput(output)) return output.json(ensembleResult(found!))
        output.line(ensembleId)
        const command = createCommandLine(context.deps.env, context.config())
        const next = [...(await showPullRequest(client, found!, command)), ...lookAtAgents(found!, command)]
        const checked = found!.synthesis ? undefined : await lastChecked(client, found!, signal)
        const { paint, stdout } = output
        for (const line of renderSummary(found!, { paint, width: textWidth(stdout), command, checked, next }))
          output.line(line)
      }),
    )
}

/** What an ensemble without a result checked last: that stands in its log alone. */
async function lastChecked(
  client: TuttiClient,
  { ensembleId, reason }: Ensemble,
  signal: AbortSignal,
): Promise<Synthesis | undefined> {
  if (reason !== 'check_failed') return undefined
  let last: Synthesis | undefined
  for await (const update of followEnsemble(async () => client, { ensembleId, signal }))
    last = update.synthesis
  return last
}
