// Drives go-git, git in Go, which shares no code with git. test/clients/driver-protocol.ts says how.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

type request struct {
	Operation string `json:"operation"`
	URL       string `json:"url"`
	Username  string `json:"username"`
	Token     string `json:"token"`
	Folder    string `json:"folder"`
	Depth     int    `json:"depth"`
	Refspec   string `json:"refspec"`
}

type answer struct {
	Outcome string `json:"outcome"`
	Words   string `json:"words,omitempty"`
	Version string `json:"version,omitempty"`
}

func carryOut(asked request, said *bytes.Buffer) error {
	auth := &http.BasicAuth{Username: asked.Username, Password: asked.Token}
	if asked.Operation == "clone" {
		options := &git.CloneOptions{URL: asked.URL, Auth: auth, Depth: asked.Depth, Progress: said}
		_, err := git.PlainClone(asked.Folder, false, options)
		return err
	}
	repository, err := git.PlainOpen(asked.Folder)
	if err != nil {
		return err
	}
	switch asked.Operation {
	case "fetch":
		return repository.Fetch(&git.FetchOptions{Auth: auth, Progress: said})
	case "unshallow":
		return repository.Fetch(&git.FetchOptions{Auth: auth, Progress: said, Depth: math.MaxInt32})
	case "push":
		specs := []config.RefSpec{config.RefSpec(asked.Refspec)}
		return repository.Push(&git.PushOptions{Auth: auth, Progress: said, RefSpecs: specs})
	}
	return errors.New("unknown operation")
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if strings.HasPrefix(module.Path, "github.com/go-git/go-git/") {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		panic(err)
	}
	given := answer{Outcome: "ok"}
	if asked.Operation == "version" {
		given.Version = version()
	} else {
		var said bytes.Buffer
		if err := carryOut(asked, &said); err != nil {
			given = answer{Outcome: "refused", Words: said.String() + err.Error()}
		}
	}
	text, _ := json.Marshal(given)
	fmt.Println(string(text))
}
