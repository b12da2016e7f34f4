/** A prompt that is a script of the deterministic brain. */
export const script = (...lines: readonly string[]): string => ['```tutti-script', ...lines, '```'].join('\n')
