import type { ActivityCall } from './observe-activities.ts'

/** Who an activity works for, under the names that log lines and spans use (design §9). */
export function activityFields(call: ActivityCall): Record<string, string | number> {
  const { owner, bcId, ensembleId, turn, incarnation } = call
  return {
    ...(owner && { owner }),
    ...(bcId && { bc_id: bcId }),
    ...(ensembleId && { ensemble_id: ensembleId }),
    ...(turn !== undefined && { turn }),
    ...(incarnation !== undefined && { incarnation }),
  }
}
