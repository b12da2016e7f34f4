import type { Fault } from './faulty-ports.ts'

/** A fault at an exact step that came to pass. */
export interface StruckFault extends Fault {
  readonly during: 'saving' | 'recovery'
}

/** What was done to agents between their recoveries: proof that a comparison had something to find. */
export interface LifeCounts {
  readonly recoveries: number
  /** How many of them had to give a state that was known; of the others it is known only that they must prove themselves. */
  readonly compared: number
  readonly faults: readonly StruckFault[]
  /** How often a kill whose moment a clock decides fell into what it was to cut off. */
  readonly cutOff: number
  /** Edits that changed something in a state that a recovery had to give back. */
  readonly edits: number
  /** What those were, by name. */
  readonly shapes: ReadonlySet<string>
}

export const noCounts: LifeCounts = {
  recoveries: 0,
  compared: 0,
  faults: [],
  cutOff: 0,
  edits: 0,
  shapes: new Set(),
}

export function addCounts(left: LifeCounts, right: LifeCounts): LifeCounts {
  return {
    recoveries: left.recoveries + right.recoveries,
    compared: left.compared + right.compared,
    faults: [...left.faults, ...right.faults],
    cutOff: left.cutOff + right.cutOff,
    edits: left.edits + right.edits,
    shapes: left.shapes.union(right.shapes),
  }
}

/** For people, in two lines. */
export function describeCounts({ compared, faults, cutOff, edits, shapes }: LifeCounts): string {
  const tally = (nameOf: (fault: StruckFault) => string) =>
    [...Map.groupBy(faults, nameOf)]
      .map(([name, { length }]) => `${length} ${name}`)
      .toSorted((left, right) => left.localeCompare(right, 'en', { numeric: true }))
      .join(', ')
  return [
    `${compared} had a known state to give back, ${edits} edits of ${shapes.size} shapes in it; ${cutOff} kills by the clock cut something off.`,
    `${faults.length} faults at exact steps: ${tally(({ step }) => `at ${step}`)}; ${tally(({ when }) => `${when} it`)}; ${tally(({ kills }) => `of the ${kills}`)}; ${tally(({ during }) => `in a ${during}`)}.`,
  ].join('\n')
}
