/** Why a change of the user's is not in the agent's sandbox, and what to do. */
export const cannotHave = (code: string, detail: string): string =>
  `the agent's sandbox cannot have it (${code}). ${detail}`
