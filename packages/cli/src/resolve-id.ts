import type { TuttiClient } from '@tutti/client'
import { TuttiError, isAgentId, isEnsembleId } from '@tutti/core'
import { safeLine } from './output/terminal-text.ts'

const nouns = {
  agent: { prefix: 'bc-', other: 'en-', isFull: isAgentId, list: 'tutti agent list' },
  ensemble: { prefix: 'en-', other: 'bc-', isFull: isEnsembleId, list: 'tutti ensemble list' },
} as const

/**
 * An agent's id from an id or a beginning of one that only one agent has; `bc-` may be left out.
 *
 * @throws TuttiError `not_found` with the text when no agent has it; `invalid_argument` when several have or it can be none.
 */
export function resolveAgentId(client: TuttiClient, text: string, signal: AbortSignal): Promise<string> {
  return resolveId('agent', text, async function* () {
    for (let pageToken = ''; ;) {
      const page = await client.agents.listAgents(
        { pageSize: 1000, pageToken, includeArchived: true },
        { signal },
      )
      yield* page.agents.map((agent) => agent.bcId)
      pageToken = page.nextPageToken
      if (pageToken === '') return
    }
  })
}

/** As {@link resolveAgentId} for ensembles (`en-`). */
export function resolveEnsembleId(client: TuttiClient, text: string, signal: AbortSignal): Promise<string> {
  return resolveId('ensemble', text, async function* () {
    for (let pageToken = ''; ;) {
      const page = await client.ensembles.listEnsembles({ pageSize: 1000, pageToken }, { signal })
      yield* page.ensembles.map((ensemble) => ensemble.ensembleId)
      pageToken = page.nextPageToken
      if (pageToken === '') return
    }
  })
}

async function resolveId(
  noun: keyof typeof nouns,
  given: string,
  all: () => AsyncIterable<string>,
): Promise<string> {
  const { prefix, other, isFull, list } = nouns[noun]
  const text = given.trim().toLowerCase()
  // The server says whether a full id exists.
  if (isFull(text)) return text
  const start = text.startsWith(prefix) ? text : `${prefix}${text}`
  const rest = start.slice(prefix.length)
  const shown = JSON.stringify(safeLine(given.slice(0, 80)))
  if (text.startsWith(other) || !/^[0-9a-f][0-9a-f-]{0,35}$/.test(rest)) {
    throw new TuttiError(
      'invalid_argument',
      `${shown} is not the id of an ${noun}. It looks like ${prefix}0191…; "${list}" shows them.`,
      { field: 'id' },
    )
  }
  const matches: string[] = []
  for await (const id of all()) if (id.startsWith(start)) matches.push(id)
  const [only, second] = matches
  if (only === undefined)
    throw new TuttiError('not_found', `There is no ${noun} ${shown}.`, { id: given.slice(0, 80) })
  if (second !== undefined) {
    throw new TuttiError(
      'invalid_argument',
      `${shown} could be ${matches.length} ${noun}s: ${matches.slice(0, 3).join(', ')}${matches.length > 3 ? ', …' : ''}. Write more of the id.`,
      { field: 'id' },
    )
  }
  return only
}
