/** Controls, bidirectional marks and invisible characters: they make text look like other text. */
const deceptive = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** The text with every deceptive character but tab and line feed as `\u{…}`, so that a person sees it (SEC-11). */
export const visibleText = (text: string): string =>
  text.replace(deceptive, (character) =>
    character === '\n' || character === '\t'
      ? character
      : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  )

/** Whether a text has any deceptive character, tab and line feed included. */
export const hasDeceptive = (text: string): boolean => text.search(deceptive) >= 0
